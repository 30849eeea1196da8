/**
 * Faultline as a library: `import { diagnose } from "faultline"` (docs/library.md). It reads files and answers; it prints
 * nothing, writes nothing and ends no process.
 */
import { UserError } from "../base/errors.ts";
import { BUILT } from "../base/built.ts";
import type { Verdict } from "../model/verdict.ts";
import { diagnose as runDiagnosis } from "../pipeline/diagnose.ts";

export type { Action, Suspect, Verdict, VerdictInput } from "../model/verdict.ts";
export { UserError };

export const version: string = BUILT.version;

export interface DiagnoseOptions {
  /** Profiler traces of healthy runs of the same job. */
  readonly baseline?: readonly string[];
  /** Path of a job.json. */
  readonly jobFile?: string;
  /** Source of a regular expression for iteration lines; groups as for `--pattern`. */
  readonly pattern?: string;
  /** Ends it early: the call then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** `done` of `total`, of a stage: "reading", "methods". */
  readonly onProgress?: (stage: string, done: number, total: number) => void;
}

/**
 * The verdict on a job: the document that `faultline diagnose --json` prints. `paths` are files, folders and archives.
 * Throws UserError where a path cannot be read or nothing in it can be used; `hint` says what to do.
 */
export async function diagnose(
  paths: string | readonly string[],
  options: DiagnoseOptions = {},
): Promise<Verdict> {
  const { signal = new AbortController().signal, onProgress = () => undefined, ...rest } = options;
  signal.throwIfAborted();
  try {
    const { verdict } = await runDiagnosis(
      { ...rest, paths: typeof paths === "string" ? [paths] : paths },
      { signal, progress: onProgress },
    );
    return verdict;
  } finally {
    signal.throwIfAborted();
  }
}
