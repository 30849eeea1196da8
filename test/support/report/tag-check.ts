/**
 * A strict reader of the report's own markup, for its tests: whatever is not a plain tag with quoted
 * attributes, or does not balance, is an error. A text that escaped its place shows up as one of these.
 */
export interface Tag {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
}

const VOID = new Set(["!doctype", "meta", "br", "wbr"]);
const TAG = /<(\/?)([!a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z:-]+(?:="[^"<>]*")?)*)\s*(\/?)>/g;
const ATTRIBUTE = /([a-zA-Z:-]+)(?:="([^"]*)")?/g;

/** All tags in order; throws where the page is not well formed. */
export function readTags(page: string): Tag[] {
  const tags: Tag[] = [];
  const open: string[] = [];
  const body = page
    .replace(/<style>[^<]*<\/style>/, "<style></style>")
    .replace(/<script>[^<]*<\/script>/, "<script></script>");
  const rest = body.replace(TAG, (_, slash: string, word: string, list: string, end: string) => {
    const name = word.toLowerCase();
    if (slash === "/") {
      const last = open.pop();
      if (last !== name) throw new Error(`</${name}> closes <${last}>`);
      return "";
    }
    const attributes = new Map<string, string>();
    for (const [, key, value] of list.matchAll(ATTRIBUTE)) attributes.set(key!, value ?? "");
    tags.push({ name, attributes });
    if (end === "" && !VOID.has(name)) open.push(name);
    return "";
  });
  if (open.length > 0) throw new Error(`never closed: ${open.join()}`);
  const stray = /[<>]/.exec(rest);
  if (stray)
    throw new Error(`stray ${stray[0]} near ${rest.slice(stray.index - 40, stray.index + 80)}`);
  return tags;
}
