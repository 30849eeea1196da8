/**
 * Markup that escapes by default. Log lines and file names come from strangers: the only way to get
 * text into the page is the `html` tag, which escapes whatever is not already `Markup`. Attributes are
 * always written in double quotes, so one escaping serves text and attributes alike.
 */

export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Part = string | number | Markup | null | undefined | false | readonly Part[];

export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  let text = strings[0]!;
  for (const [i, part] of parts.entries()) text += written(part) + strings[i + 1]!;
  return new Markup(text);
}

/** Puts `between` between the parts; an empty list gives nothing. */
export function join(parts: readonly Part[], between: Part): Part[] {
  return parts.flatMap((part, i) => (i === 0 ? [part] : [between, part]));
}

function written(part: Part): string {
  if (part instanceof Markup) return part.text;
  if (Array.isArray(part)) return part.map(written).join("");
  return typeof part === "string" || typeof part === "number" ? escapeText(`${part}`) : "";
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;",
};

/**
 * Besides markup: control characters, lone surrogates and the marks that turn the writing direction
 * become visible, so that a line reads in the order in which it was written.
 */
export function escapeText(text: string): string {
  return text
    .replace(/[&<>"'`]/g, (character) => ENTITIES[character]!)
    .replace(UNPRINTABLE, "\uFFFD");
}

export const UNPRINTABLE =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu;

/** The value of href for a finding's anchor. Ids are ours ("f2"), but nothing here relies on that. */
export function anchor(id: string): string {
  return `finding-${encodeURIComponent(id.replace(/\p{Cs}/gu, "\uFFFD"))}`;
}
