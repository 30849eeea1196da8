/** The one bridge from the html tag's markup, which has escaped whatever it was given, to components. */
import type { VNode } from "preact";
import { Markup } from "../html/escape.ts";

/** An object that only looks like markup is not taken for it: nothing but our tag makes one. */
export function Drawn({ markup }: { readonly markup: Markup }): VNode | null {
  if (!(markup instanceof Markup)) return null;
  return <div class="fl-drawn" dangerouslySetInnerHTML={{ __html: markup.text }} />;
}
