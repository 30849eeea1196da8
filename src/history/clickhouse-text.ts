/**
 * Values inside ClickHouse's SQL. Servers of 2018 know no bound parameters, so values become part of the text: a name
 * of plain characters as it is, all else as hexadecimal digits. No text can end its literal.
 */

const PLAIN = /^[A-Za-z0-9_.:/-]{0,200}$/;

export function sqlText(value: string): string {
  if (PLAIN.test(value)) return `'${value}'`;
  return `unhex('${Buffer.from(value).toString("hex").toUpperCase()}')`;
}

export function sqlNumber(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`${value} cannot be asked for`);
  return String(value);
}

/** For counts: whole and not negative. */
export function sqlCount(value: number): string {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is no count`);
  return String(value);
}
