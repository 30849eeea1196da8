/** Labels of machines from people: CSV with a head, or JSON as the service exports it. */
import { jsonOf, fieldsOf } from "../base/json.ts";
import { UserError } from "../base/errors.ts";
import { CAUSES } from "../model/cause.ts";
import type { MachineLabel } from "../model/machine-labels.ts";
import { splitCsv } from "./iteration-table/csv-columns.ts";

/** In the year 2286; milliseconds and nanoseconds are beyond it. */
const MOST_S = 1e10;

type Row = Readonly<Record<string, unknown>>;

const HINT =
  "each label has machine (or *), start, end, state (faulty or healthy) and, if known, cause: docs/inputs.md";

export function readMachineLabels(text: string, name: string): readonly MachineLabel[] {
  const rows = /^\s*[[{]/.test(text) ? jsonRows(text, name) : csvRows(text);
  if (rows.length === 0) throw new UserError(`${name} holds no labels`, HINT, 3);
  return rows.map((row, i) => labelOf(row, `${name}: label ${i + 1}`));
}

function jsonRows(text: string, name: string): readonly Row[] {
  const value = jsonOf(text);
  if (value === undefined) throw new UserError(`${name} is not JSON`, HINT, 3);
  const list: unknown = Array.isArray(value) ? value : fieldsOf(value)?.["labels"];
  return Array.isArray(list) ? list.filter((one): one is Row => fieldsOf(one) !== null) : [];
}

function csvRows(text: string): readonly Row[] {
  const [head = "", ...lines] = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const names = splitCsv(head).map((field) => field.trim().toLowerCase());
  return lines.map((line) => {
    const fields = splitCsv(line);
    return Object.fromEntries(names.map((field, i) => [field, (fields[i] ?? "").trim()]));
  });
}

function labelOf({ machine, start, end, state, cause }: Row, where: string): MachineLabel {
  const wrong = (what: string): never => {
    throw new UserError(`${where}: ${what}`, HINT, 3);
  };
  const isFaulty = state === "faulty";
  if (!isFaulty && state !== "healthy") wrong("its state is neither faulty nor healthy");
  if (typeof machine !== "string" || machine === "") wrong("it names no machine");
  if (isFaulty && machine === "*") wrong("not all machines can be faulty: name one");
  const [fromS, toS] = [secondsOf(start), secondsOf(end)];
  if (!(fromS < toS && Math.abs(fromS) < MOST_S && Math.abs(toS) < MOST_S))
    wrong("it has no start before its end, as ISO 8601 or Unix seconds");
  const known = CAUSES.find((one) => one === cause) ?? null;
  if (known === null && typeof cause === "string" && cause !== "")
    wrong(`${cause.slice(0, 80)} is no cause that Faultline knows`);
  return { machine: machine === "*" ? null : String(machine), fromS, toS, isFaulty, cause: known };
}

/** NaN where it is none. */
function secondsOf(value: unknown): number {
  if (typeof value === "number") return value;
  const text = String(value);
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/.test(text);
  return Date.parse(hasZone ? text : `${text.replace(" ", "T")}Z`) / 1000;
}
