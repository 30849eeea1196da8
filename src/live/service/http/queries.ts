/** What may stand behind the question mark: each parameter with its check and its description. */
import { harmless } from "../../../base/text.ts";
import type { RowAt } from "../../../history/history.ts";
import { NAME } from "../../wire/messages.ts";
import { Refusal } from "../view.ts";

export interface Parameter<T> {
  readonly says: string;
  readonly schema: Readonly<Record<string, unknown>>;
  /** null where the text is not one. */
  read(this: void, text: string): T | null;
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;
export type Read<P extends Parameters> = {
  readonly [K in keyof P]?: P[K] extends Parameter<infer T> ? T : never;
};

export const name = (says: string): Parameter<string> => ({
  says,
  schema: { type: "string", pattern: NAME.source },
  read: (text) => (NAME.test(text) ? text : null),
});

export const text = (says: string): Parameter<string> => ({
  says,
  schema: { type: "string", minLength: 1, maxLength: 256 },
  read: (text) => (text.length >= 1 && text.length <= 256 ? text : null),
});

export const oneOf = <T extends string>(says: string, words: readonly T[]): Parameter<T> => ({
  says,
  schema: { type: "string", enum: words },
  read: (text) => words.find((word) => word === text) ?? null,
});

export const flag = (says: string): Parameter<boolean> => ({
  says,
  schema: { type: "boolean" },
  read: (text) => (text === "true" ? true : text === "false" ? false : null),
});

export const whole = (says: string, most: number): Parameter<number> => ({
  says,
  schema: { type: "integer", minimum: 1, maximum: most },
  read: (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    return value >= 1 && value <= most ? value : null;
  },
});

const LATEST_MS = 8.64e15;
/** Milliseconds since 1970, or 2026-01-31T12:00:00Z. */
export const moment = (says: string): Parameter<number> => ({
  says: `${says}: milliseconds since 1970, or a date and time as ISO 8601 has them`,
  schema: {
    anyOf: [
      { type: "integer", minimum: 0, maximum: LATEST_MS },
      { type: "string", format: "date-time" },
    ],
  },
  read: (text) => {
    if (/^\d{1,16}$/.test(text)) return Number(text) <= LATEST_MS ? Number(text) : null;
    // Without a zone the answer would depend on the machine's.
    if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/.test(text))
      return null;
    const value = Date.parse(text);
    return Number.isFinite(value) && value >= 0 ? value : null;
  },
});

/** A moment, or the row of a page at which the next one begins: `next` of the answer. */
export const cursor: Parameter<RowAt> = {
  ...moment("before this moment, or behind the row that `next` of the last page names"),
  read(words) {
    const [, ms, id] = /^(\d{1,16}(?:\.\d{1,6})?),([\x20-\x7e]{1,200})$/.exec(words) ?? [];
    const atMs = ms === undefined ? moment("").read(words) : Number(ms);
    return atMs === null || atMs > LATEST_MS ? null : { atMs, id: id ?? "" };
  },
};

/** A misspelt parameter would silently give another answer than was asked for: it is refused. */
export function readQuery<P extends Parameters>(url: string, known: P): Read<P> {
  const mark = url.indexOf("?");
  const found: Record<string, unknown> = {};
  for (const [key, value] of new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1))) {
    const parameter = Object.hasOwn(known, key) ? known[key] : undefined;
    const shown = harmless(key.slice(0, 64));
    if (!parameter) {
      const names = Object.keys(known);
      const which = names.length === 0 ? "none is" : `${names.join(", ")} are`;
      throw new Refusal(400, `there is no parameter "${shown}" here; ${which} known`);
    }
    if (Object.hasOwn(found, key)) throw new Refusal(400, `"${shown}" is given twice`);
    const read = parameter.read(value);
    if (read === null) throw new Refusal(400, `"${shown}" must be ${words(parameter)}`);
    found[key] = read;
  }
  return found as Read<P>;
}

function words({ schema }: Parameter<unknown>): string {
  if (schema["type"] === "boolean") return "true or false";
  if (schema["type"] === "integer") return `a whole number from 1 to ${String(schema["maximum"])}`;
  if (schema["pattern"] !== undefined) return "a name of letters, digits, - and _";
  if (schema["enum"] !== undefined) return (schema["enum"] as readonly string[]).join(" or ");
  if (schema["anyOf"] !== undefined)
    return "milliseconds since 1970 or a time like 2026-01-31T12:00:00Z";
  return "1 to 256 characters";
}
