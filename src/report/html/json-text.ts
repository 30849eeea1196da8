/**
 * JSON for reading: what fits on a line stays on one, lists of numbers always do. Stops soon after
 * `most` characters, so that a finding with a million figures costs nothing.
 */
const LINE = 100;

export function jsonText(value: unknown, most: number): string {
  const out: string[] = [];
  let length = 0;
  const put = (text: string): void => {
    out.push(text);
    length += text.length;
  };
  const write = (node: unknown, indent: string): void => {
    if (length > most) return;
    const short = onOneLine(node);
    if (short !== null) return put(short);
    const isList = Array.isArray(node);
    const entries = Object.entries(node as object);
    const inner = `${indent}  `;
    put(isList ? "[" : "{");
    for (const [i, [key, child]] of entries.entries()) {
      if (length > most) break;
      put(`${i === 0 ? "" : ","}\n${inner}${isList ? "" : `${JSON.stringify(key)}: `}`);
      write(child, inner);
    }
    put(`\n${indent}${isList ? "]" : "}"}`);
  };
  write(value, "");
  return out.join("").slice(0, most);
}

function onOneLine(node: unknown): string | null {
  if (typeof node !== "object" || node === null) return scalar(node);
  if (Array.isArray(node) && node.every((item) => typeof item === "number")) {
    return `[${node.join(", ")}]`;
  }
  const entries = Object.entries(node);
  if (entries.length > 8) return null;
  const parts: string[] = [];
  for (const [key, child] of entries) {
    if (typeof child === "object" && child !== null && Object.keys(child).length > 8) return null;
    const text = onOneLine(child);
    if (text === null) return null;
    parts.push(Array.isArray(node) ? text : `${JSON.stringify(key)}: ${text}`);
  }
  const line = Array.isArray(node) ? `[${parts.join(", ")}]` : `{ ${parts.join(", ")} }`;
  return line.length <= LINE ? line : null;
}

function scalar(node: unknown): string {
  return typeof node === "bigint" ? String(node) : (JSON.stringify(node) ?? "null");
}
