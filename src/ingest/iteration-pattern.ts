/**
 * The user's own regular expression for iteration lines, for loops that print what nobody else prints:
 * `(?<iteration>\d+) took (?<ms>[\d.]+)`. Named groups: iteration; ms or s; batch; rank.
 */
import { errorText, UserError } from "../base/errors.ts";
import type { FaultRecord } from "../model/fault-record.ts";

/** How files are to be read, as far as the user has a say. Plain data: it crosses to other threads. */
export interface ReadOptions {
  /** Source of a JavaScript regular expression; replaces the formats of iteration lines that we know. */
  readonly pattern?: string;
  /** For questions about logs: whatever can be read as text is one, and nothing else is read. */
  readonly isOfLogs?: boolean;
  /** Records beside the shipped ones. */
  readonly records?: readonly FaultRecord[];
  /** Threads; by default as many as are worth it. */
  readonly workers?: number;
}

const HINT =
  "name its groups: (?<iteration>…), and if the line says so (?<ms>…) or (?<s>…), (?<batch>…), (?<rank>…)";

/** The one place where a pattern is checked. */
export function checkPattern(source: string): RegExp {
  let pattern: RegExp;
  let groups: Readonly<Record<string, unknown>>;
  try {
    pattern = new RegExp(source);
    // Matches the empty text whatever the pattern is, and so tells the names of all groups.
    groups = new RegExp(`${source}|`).exec("")?.groups ?? {};
  } catch (error) {
    const why = errorText(error);
    throw new UserError(`the pattern cannot be used: ${why}`, HINT, 2);
  }
  if (!("iteration" in groups)) {
    throw new UserError(`the pattern has no group named "iteration": ${source}`, HINT, 2);
  }
  if ("ms" in groups && "s" in groups) {
    throw new UserError(`the pattern has both "ms" and "s": ${source}`, HINT, 2);
  }
  return pattern;
}
