/** Components as markup, for the one-file report. The page does not import this. */
import { type FunctionComponent, h, type VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { Markup } from "../html/escape.ts";
import { guardText } from "./plain.ts";

/**
 * The renderer escapes & < and double quotes, which is enough for browsers; the rest is escaped as the html tag does, so
 * that one strict reader checks all of the page.
 */
export function markupOf<P extends object>(part: (props: P) => VNode | null, props: P): Markup {
  guardText();
  return new Markup(
    renderToString(h(part as FunctionComponent, props)).replace(
      TOKENS,
      (_, tag: string | undefined, text: string | undefined) =>
        tag === undefined
          ? escapeRest(text!)
          : tag.replace(QUOTED, (value) => `"${escapeRest(value.slice(1, -1))}"`),
    ),
  );
}

/** A tag, or a stretch of text; the renderer leaves no < in texts and no double quote in attributes. */
const TOKENS = /(<(?:"[^"]*"|[^">])*>)|([^<]+)/g;
const QUOTED = /"[^"]*"/g;
const ENTITIES: Readonly<Record<string, string>> = { ">": "&gt;", "'": "&#39;", "`": "&#96;" };

function escapeRest(text: string): string {
  return text.replace(/[>'`]/g, (character) => ENTITIES[character]!);
}
