/** Arguments that several commands take. */
import { InvalidArgumentError } from "commander";

export const PATTERN =
  "for your own log lines: a regular expression with (?<iteration>…) and (?<ms>…) or (?<s>…); (?<iteration>…) alone if lines have timestamps";

export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new InvalidArgumentError("It must be a whole number from 1.");
  return Number(text);
}

export function port(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError("It must be a port, 0 to 65535.");
  return Number(text);
}
