/**
 * Text of strangers made plain: control characters, lone surrogates and the marks that turn the writing direction become
 * visible, so that a line reads in the order in which it was written; and what is longer than anybody reads is cut.
 */
import { options, type VNode } from "preact";
import { UNPRINTABLE } from "../html/escape.ts";

/** More than a screen holds. A name of a megabyte would otherwise be laid out, and freeze the page. */
export const MOST_CHARS = 20_000;

export function plain(text: string, most: number = MOST_CHARS): string {
  // Cut first: what a cut through a pair of surrogates leaves behind is made visible, too.
  const short = text.length <= most ? text : `${text.slice(0, most)}…`;
  return short.replace(UNPRINTABLE, "\uFFFD");
}

/** Paths of drawings are ours, numbers only, and may be long. */
const OURS = new Set(["d", "children", "dangerouslySetInnerHTML"]);
const ADDRESSES = new Set(["href", "src", "action", "formaction", "xlinkhref"]);
/** What browsers strip from an address before they look for its scheme. */
// oxlint-disable-next-line no-control-regex
const STRIPPED = /[\u0000-\u0020]/g;
const RUNS = /^(?:javascript|vbscript):/i;

let isInstalled = false;

/**
 * From now on every text and every attribute of every element is plain, without anybody having to remember. Not covered:
 * a component that returns a bare string, which no part does.
 */
export function guardText(): void {
  if (isInstalled) return;
  isInstalled = true;
  const before = options.vnode?.bind(options);
  options.vnode = (vnode) => {
    before?.(vnode);
    guard(vnode);
  };
}

function guard({ type, props }: VNode): void {
  const own = props as Record<string, unknown>;
  const { children } = own as { children?: unknown };
  if (children !== undefined && children !== null) own["children"] = plainChild(children);
  // What components are given is data: it meets this again in the elements they make.
  if (typeof type !== "string") return;
  for (const name in own) {
    const value = own[name];
    if (typeof value !== "string" || OURS.has(name)) continue;
    const clean = plain(value);
    own[name] =
      ADDRESSES.has(name.toLowerCase().replace(":", "")) && RUNS.test(clean.replace(STRIPPED, ""))
        ? "#"
        : clean;
  }
}

/** A new array where something changes: it may be somebody's data. */
function plainChild(child: unknown): unknown {
  if (typeof child === "string") return plain(child);
  if (!Array.isArray(child)) return child;
  return child.some((one) => typeof one === "string" || Array.isArray(one))
    ? child.map(plainChild)
    : child;
}
