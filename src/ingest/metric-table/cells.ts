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

/** nvidia-smi's reasons for low clocks: "Active", "Not Active", "0x0000000000000004"; NaN for others. */
export function stateNumber(field: string): number {
  if (/^0x[\da-f]{1,16}$/i.test(field)) return Number(field);
  return /^not active$/i.test(field) ? 0 : /^active$/i.test(field) ? 1 : NaN;
}

/** "0,98", as spreadsheets of half of Europe write where semicolons divide; NaN for others. */
export function decimalComma(field: string): number {
  return DECIMAL_COMMA.test(field) ? Number(field.replace(",", ".")) : NaN;
}
