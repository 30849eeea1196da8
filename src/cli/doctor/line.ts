/** What the doctor says of one thing. */

/** "none": it is not set up, which is no fault. */
export type State = "ok" | "warning" | "broken" | "none";

export interface Line {
  /** "service", "rings", … */
  readonly check: string;
  readonly state: State;
  /** One line. */
  readonly says: string;
  /** What to do, a command where there is one; null where nothing is to be done. */
  readonly fix: string | null;
}

/** Lines of one check. */
export function linesOf(check: string) {
  const line =
    (state: State) =>
    (says: string, fix: string | null = null): Line => ({ check, state, says, fix });
  return { ok: line("ok"), warning: line("warning"), broken: line("broken"), none: line("none") };
}

const MOST_NAMED = 4;

/** "a, b and 3 more" */
export function some(names: readonly string[]): string {
  const named = names.slice(0, MOST_NAMED).join(", ");
  return names.length > MOST_NAMED ? `${named} and ${names.length - MOST_NAMED} more` : named;
}
