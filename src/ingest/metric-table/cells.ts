/** Fields of tables that are not just a number. */
const BLANK =
  /^(?:|-+|null|none|nil|na|n\/a|nan|\[n\/a\]|\[not supported\]|\[unknown error\]|not supported|undefined|missing|\?|\.)$/i;
const WITH_UNIT = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([%°A-Za-z][\w/%°]{0,11})$/;
const DECIMAL_COMMA = /^[+-]?\d+,\d+$/;

/** What says that there is no value. */
export function isBlank(field: string): boolean {
  return BLANK.test(field);
}

/** "98 %", "350.12 W". */
export function withUnit(field: string): { readonly value: number; readonly unit: string } | null {
  const found = WITH_UNIT.exec(field);
  return found ? { value: Number(found[1]), unit: found[2]! } : null;
}

/** "0,98", as spreadsheets of half of Europe write where semicolons divide; NaN for others. */
export function decimalComma(field: string): number {
  return DECIMAL_COMMA.test(field) ? Number(field.replace(",", ".")) : NaN;
}
