/** JSON as it leaves the service. */

/**
 * Lines of strangers' logs are in it: what a terminal or a page could take for more than text is written as an escape,
 * which every JSON reader undoes.
 */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A column for JSON, to a thousandth: float32 has no more, and NaN is null there. */
export function column(values: Float32Array | Float64Array): (number | null)[] {
  const out = Array.from<number | null>({ length: values.length });
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    out[i] = Number.isFinite(value) ? Math.round(value * 1000) / 1000 : null;
  }
  return out;
}
