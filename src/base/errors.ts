/**
 * What the user can fix: a path that does not exist, a wrong option. Thrown at the start only;
 * bad data inside a file is a Defect beside the rows, never an exception.
 */
export class UserError extends Error {
  readonly hint: string;
  /** 2: the call's words are off, 3: no input could be read, 1: anything else. */
  readonly exitCode: 1 | 2 | 3;

  constructor(message: string, hint: string, exitCode: 1 | 2 | 3 = 1) {
    super(message);
    this.name = "UserError";
    this.hint = hint;
    this.exitCode = exitCode;
  }
}

/** Our own bug: nobody catches it except the edges of a method, a worker or the process. */
export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`internal error: ${what}`);
}

/** What went wrong, as one text, whatever was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
