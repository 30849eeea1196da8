/** Reads and checks records. The user has to fix a wrong one, so the error names its file, place and field. */
import { fieldsOf } from "../base/json.ts";
import { UserError } from "../base/errors.ts";
import { CAUSES } from "../model/cause.ts";
import {
  CATEGORIES,
  LAYERS,
  OWNERS,
  ROLES,
  SEVERITIES,
  TELLS,
  type FaultRecord,
} from "../model/fault-record.ts";

const SHORTEST_ANCHOR = 4;
const MOST_RECORDS = 20_000;
const HINT =
  "see src/library/README.md for the form of a record; `faultline logs export` writes examples";

export function parseRecords(text: string, file: string): FaultRecord[] {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new UserError(`${file} is not JSON: ${(error as Error).message}`, HINT);
  }
  if (!Array.isArray(data))
    throw new UserError(`${file} must hold a list of records: [{ "id": … }]`, HINT);
  if (data.length > MOST_RECORDS)
    throw new UserError(`${file} holds ${data.length} records, more than ${MOST_RECORDS}`, HINT);
  return data.map((entry, place) => checked(entry, `${file}, record ${place + 1}`));
}

export function checked(entry: unknown, where: string): FaultRecord {
  const given = fieldsOf(entry);
  if (given === null) throw new UserError(`${where} is not an object`, HINT);
  const name = typeof given["id"] === "string" ? `${where} (${given["id"]})` : where;
  const fail = (field: string, what: string): never => {
    throw new UserError(`${name}: "${field}" ${what}`, HINT);
  };
  const text = (field: string): string => {
    const value = given[field];
    return typeof value === "string" && value.trim() !== "" ? value : fail(field, "must be text");
  };
  const oneOf = <T extends string>(field: string, words: readonly T[]): T => {
    const value = given[field];
    return words.includes(value as T)
      ? (value as T)
      : fail(field, `must be one of ${words.join(", ")}`);
  };
  const texts = (field: string, value: unknown): string[] =>
    Array.isArray(value) && value.every((one) => typeof one === "string")
      ? value
      : fail(field, "must be a list of texts");
  if (typeof given["match"] !== "object" || given["match"] === null) fail("match", "is missing");
  const match = given["match"] as Record<string, unknown>;
  const all = texts("match.all", match["all"]);
  if ((all[0]?.length ?? 0) < SHORTEST_ANCHOR)
    fail("match.all", `must begin with a text of at least ${SHORTEST_ANCHOR} characters`);
  const any = match["any"] === undefined ? [] : texts("match.any", match["any"]);
  const not = match["not"] === undefined ? [] : texts("match.not", match["not"]);
  const literals = [...all, ...any, ...not];
  if (literals.length > MOST_LITERALS || literals.some(({ length }) => length > LONGEST_LITERAL))
    fail("match", `may have ${MOST_LITERALS} texts of ${LONGEST_LITERAL} characters at most`);
  if ((all[0]!.match(/[a-z]/gi)?.length ?? 0) < 1)
    fail("match.all", "must begin with a text that has letters");
  const certainty = given["certainty"];
  if (typeof certainty !== "number" || !(certainty >= 0 && certainty <= 1))
    fail("certainty", "must be a number from 0 to 1");
  const idOf = (id: string): string =>
    /^[\w][\w.+-]{0,119}$/.test(id) && !(id in {})
      ? id
      : fail("id", "must be letters, digits, dots and dashes, 120 at most");
  const role = oneOf("role", ROLES);
  const isQuiet = role === "benign" || role === "advice";
  if (isQuiet !== (given["category"] === null))
    fail("category", `must be ${isQuiet ? "null for" : "given for"} a record of role ${role}`);
  return {
    id: idOf(text("id")),
    title: text("title"),
    layer: oneOf("layer", LAYERS),
    match: {
      all,
      ...(any.length === 0 ? {} : { any }),
      ...(not.length === 0 ? {} : { not }),
      ...(match["regex"] === undefined ? {} : { regex: pattern(match["regex"], fail) }),
    },
    meaning: text("meaning"),
    component: text("component"),
    category: isQuiet ? null : oneOf("category", CATEGORIES),
    ...(given["cause"] === undefined ? {} : { cause: oneOf("cause", CAUSES) }),
    role,
    ...(given["tells"] === undefined ? {} : { tells: oneOf("tells", TELLS) }),
    severity: oneOf("severity", SEVERITIES),
    owner: oneOf("owner", OWNERS),
    action: text("action"),
    falseFriends: texts("falseFriends", given["falseFriends"] ?? []),
    certainty: certainty as number,
    ...(given["endedBy"] === undefined ? {} : { endedBy: text("endedBy") }),
    source: text("source"),
    example: text("example"),
  };
}

const LONGEST_PATTERN = 500;
const LONGEST_LITERAL = 200;
const MOST_LITERALS = 32;
/** Each makes the time that a pattern may take longer by the length of the line. */
const MOST_UNBOUNDED = 2;
const UNBOUNDED = /(?<!\\)(?:[*+]|\{\d+,\})/g;

/**
 * Strangers' patterns may be slow on purpose. Nothing with an open end may be repeated, a choice neither, and few parts
 * may have an open end at all; then a line costs at most its length squared.
 */
function isSlow(text: string): boolean {
  const plain = text.replace(/\\./g, "x").replace(/\[(?:\^)?\]?[^\]]*\]/g, "x");
  if ((plain.match(UNBOUNDED)?.length ?? 0) > MOST_UNBOUNDED) return true;
  const open: number[] = [];
  for (let i = 0; i < plain.length; i++) {
    if (plain[i] === "(") open.push(i);
    if (plain[i] !== ")") continue;
    const body = plain.slice(open.pop() ?? 0, i);
    const after = plain.slice(i + 1);
    const isRepeated = /^(?:[*+]|\{\d*,?\d*\})/.test(after);
    if (isRepeated && /[*+|]|\{\d+,\}/.test(body.replace("(?", "("))) return true;
  }
  return false;
}

function pattern(value: unknown, fail: (field: string, what: string) => never): string {
  if (typeof value !== "string" || value === "") return fail("match.regex", "must be text");
  if (value.length > LONGEST_PATTERN) fail("match.regex", `is longer than ${LONGEST_PATTERN}`);
  if (isSlow(value))
    fail("match.regex", "may never finish: use fewer repetitions, and do not nest them");
  try {
    void new RegExp(value, "i");
  } catch (error) {
    fail("match.regex", `is not a regular expression: ${(error as Error).message}`);
  }
  return value;
}
