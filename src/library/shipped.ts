/** The records that come with Faultline: every file in records/. */
import { readdirSync, readFileSync } from "node:fs";
import type { FaultRecord } from "../model/fault-record.ts";
import { parseRecords } from "./load.ts";
import { FaultMatchers } from "./matcher.ts";

const FOLDER = new URL("./records/", import.meta.url);

let records: readonly FaultRecord[] | null = null;
let matchers: FaultMatchers | null = null;

export function shippedRecords(): readonly FaultRecord[] {
  return (records ??= readdirSync(FOLDER)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .flatMap((name) =>
      parseRecords(readFileSync(new URL(name, FOLDER), "utf8"), `records/${name}`),
    ));
}

export function shippedMatchers(): FaultMatchers {
  return (matchers ??= new FaultMatchers(shippedRecords()));
}
