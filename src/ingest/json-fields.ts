export type Fields = Readonly<Record<string, unknown>>;

/** null for what is no object of JSON. */
export function fieldsOf(value: unknown): Fields | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : null;
}
