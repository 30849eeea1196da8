/** JSON that others wrote: nothing is thrown, and nothing is believed of its fields. */
export type Fields = Readonly<Record<string, unknown>>;

/** undefined for what is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** null for what is no object of JSON. */
export function fieldsOf(value: unknown): Fields | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : null;
}

/** null for what is no text of such an object. */
export function parseFields(text: string): Fields | null {
  return fieldsOf(jsonOf(text));
}
