/** Single fields of a head, checked as they are read; each throws FrameError that names the field, never its content. */
import { FrameError } from "./frame.ts";
import { LIMITS, NAME } from "./messages.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Milliseconds since 1970 that a Date can hold. */
const LAST_TIME = 8.64e15;

export function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new FrameError(`${what} is no object`);
  }
  return value as Fields;
}

export function nameIn(fields: Fields, key: string): string {
  const value = fields[key];
  if (typeof value !== "string" || !NAME.test(value)) {
    throw new FrameError(`${key} is not a name of letters, digits, _ and -`);
  }
  return value;
}

export function textIn(fields: Fields, key: string, most: number = LIMITS.textLength): string {
  const value = fields[key];
  if (typeof value !== "string" || value.length > most) {
    throw new FrameError(`${key} is not a text of at most ${most} characters`);
  }
  return value;
}

export function integerIn(fields: Fields, key: string, least: number, most: number): number {
  return integer(fields[key], key, least, most);
}

export function timeIn(fields: Fields, key: string): number {
  const value = fields[key];
  if (typeof value !== "number" || !(value >= 0 && value <= LAST_TIME)) {
    throw new FrameError(`${key} is no time`);
  }
  return value;
}

export function isTime(value: number): boolean {
  return value >= 0 && value <= LAST_TIME;
}

export function flagIn(fields: Fields, key: string): boolean {
  const value = fields[key];
  if (typeof value !== "boolean") throw new FrameError(`${key} is neither true nor false`);
  return value;
}

export function orNull<T>(
  fields: Fields,
  key: string,
  read: (fields: Fields, key: string) => T,
): T | null {
  return fields[key] === null ? null : read(fields, key);
}

export function wordIn<T extends string>(fields: Fields, key: string, words: readonly T[]): T {
  const value = fields[key];
  const found = words.find((word) => word === value);
  if (found === undefined) throw new FrameError(`${key} is none of the known words`);
  return found;
}

export function listIn<T>(
  fields: Fields,
  key: string,
  most: number,
  read: (value: unknown) => T,
): T[] {
  const value = fields[key];
  if (!Array.isArray(value) || value.length > most) {
    throw new FrameError(`${key} is not a list of at most ${most}`);
  }
  return value.map(read);
}

export function integersIn(
  fields: Fields,
  key: string,
  count: number,
  least: number,
  most: number,
): number[] {
  return listIn(fields, key, count, (value) => integer(value, key, least, most));
}

export function rankIn(fields: Fields, key: string): number {
  return integerIn(fields, key, 0, LIMITS.worldSize - 1);
}

export function ranksIn(fields: Fields, key: string, most: number): number[] {
  return integersIn(fields, key, most, 0, LIMITS.worldSize - 1);
}

function integer(value: unknown, key: string, least: number, most: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    throw new FrameError(`${key} is not a whole number from ${least} to ${most}`);
  }
  return value;
}
