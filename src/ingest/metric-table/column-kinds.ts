/** What a table's first rows say of a column: times, numbers, or the names of devices. */
import { NO_NUMBER, textNumber } from "./byte-number.ts";
import { decimalComma, isBlank, withUnit } from "./cells.ts";
import { parseStamp } from "./times.ts";

export type Rows = readonly (readonly string[])[];

const DEVICE_FIELD = /^(?:(?:gpu|nvidia|nic|cuda)[ :_-]?)?\d{1,2}$|^GPU-[0-9a-f-]{8,}$|^mlx5_\d+/i;

/** "gpu" may be a number of a device or the utilisation; "index" may number the rows. */
export function isDevice(
  names: readonly string[],
  name: string,
  at: number,
  time: number,
  rows: Rows,
): boolean {
  const fields = rows.map((row) => (row[at] ?? "").trim()).filter((field) => field !== "");
  if (name === "gpu") {
    const others = names.some(
      (other) => other !== "gpu" && /^gpu|util|power|temp|clock|sm_|^value$/.test(other),
    );
    const bare = names.some((other) => /^(?:cpu|memory|mem|disk)$/.test(other));
    return fields.every((field) => DEVICE_FIELD.test(field)) && (others || !bare);
  }
  if (name !== "index") return true;
  const times = rows.map((row) => row[time]);
  const repeats = (list: readonly unknown[]): boolean => new Set(list).size < list.length;
  return fields.every((field) => /^\d{1,2}$/.test(field)) && (repeats(fields) || repeats(times));
}

export function areTimes(rows: Rows, at: number): boolean {
  return share(rows, at, (field) => {
    const number = textNumber(field);
    return number === NO_NUMBER ? parseStamp(field) !== null : Number.isFinite(number);
  });
}

export function areNumbers(rows: Rows, at: number): boolean {
  return share(rows, at, (field) => isNumber(field));
}

function isNumber(field: string): boolean {
  return (
    textNumber(field) !== NO_NUMBER ||
    withUnit(field) !== null ||
    !Number.isNaN(decimalComma(field))
  );
}

/** Whether most fields that are not blank pass. */
function share(rows: Rows, at: number, passes: (field: string) => boolean): boolean {
  const fields = rows.map((row) => (row[at] ?? "").trim()).filter((field) => !isBlank(field));
  return fields.filter(passes).length >= 0.6 * fields.length;
}
