/** The one scanner, set up for a job's files: it digests the lines of a log and hands them on to whoever follows ranks. */
import { shippedMatchers } from "../library/shipped.ts";
import { FormReader } from "./logs/form-reader.ts";
import { LogEngine, MOST_FORMS } from "./logs/scanner.ts";
import { isNoteworthy } from "./rank-log/noteworthy.ts";

export type OnLine = (text: string, line: number, isNoteworthy: boolean) => void;

function isTelling(text: string): boolean {
  return shippedMatchers().couldMatch(text);
}

/** What is known of lines' forms, for all logs that one thread reads, one after the other. */
export function logForms(): FormReader {
  return new FormReader(isTelling, MOST_FORMS, isNoteworthy);
}

/** For one file, which is number 0 of the digest. */
export function openLog(file: string, onLine: OnLine, forms = logForms()): LogEngine {
  const engine = new LogEngine({ isTelling, onLine }, forms);
  engine.begin(0, { key: file });
  return engine;
}
