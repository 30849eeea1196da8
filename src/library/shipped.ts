/** The records that come with Faultline: every file in records/. */
import { listOwn, readOwn } from "../base/own-files.ts";
import type { FaultRecord } from "../model/fault-record.ts";
import { parseRecords } from "./load.ts";
import { FaultMatchers } from "./matcher.ts";

const FOLDER = new URL("./records/", import.meta.url);

let records: readonly FaultRecord[] | null = null;
let matchers: FaultMatchers | null = null;

export function shippedRecords(): readonly FaultRecord[] {
  return (records ??= listOwn(FOLDER)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .flatMap((name) => parseRecords(readOwn(new URL(name, FOLDER)).toString(), `records/${name}`)));
}

export function shippedMatchers(): FaultMatchers {
  return (matchers ??= new FaultMatchers(shippedRecords()));
}
