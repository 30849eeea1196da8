/** The one scanner, set up for a job's files: it digests the lines of a log and passes them on to the readers that follow ranks. */
import { FaultMatchers } from "../library/matcher.ts";
import { shippedMatchers, shippedRecords } from "../library/shipped.ts";
import type { FaultRecord } from "../model/fault-record.ts";
import { FormReader } from "./logs/form-reader.ts";
import { LogEngine, MOST_FORMS } from "./logs/scanner.ts";
import { isNoteworthy } from "./rank-log/noteworthy.ts";
import type { LogOpening } from "./reader.ts";

type OnLine = (text: string, line: number, isNoteworthy: boolean) => void;

/** Makes a reader of lines for each file: one that went on to the next would make its answer depend on what came before. */
export function logForms(records: readonly FaultRecord[] = []): () => FormReader {
  // Made for the first log: evidence of many ranks may have none, and it takes a quarter of a second.
  let matchers: FaultMatchers | null = null;
  return () => {
    const made = (matchers ??=
      records.length === 0
        ? shippedMatchers()
        : new FaultMatchers([...shippedRecords(), ...records]));
    return new FormReader((text) => made.couldMatch(text), MOST_FORMS, isNoteworthy);
  };
}

/** For one file, which is number 0 of the digest. */
export function openLog(file: string, onLine: OnLine, known: LogOpening = {}): LogEngine {
  const { forms = logForms(), latestMs } = known;
  const engine = new LogEngine({ onLine }, forms());
  engine.begin(0, { key: file, ...(latestMs === undefined ? {} : { latestMs }) });
  return engine;
}
