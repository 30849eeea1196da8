/** What every reader owes for bytes that are not its own: no exception, and a reading that says what is wrong. */
import fc from "fast-check";
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readersFor } from "../../src/ingest/formats.ts";
import { runs } from "../support/cases.ts";
import { readBytes } from "../support/ingest/reader-contract.ts";

const archive = (path: string): string =>
  fileURLToPath(new URL(`../../fixtures/${path}`, import.meta.url));
const part = (path: string, member: string): Buffer =>
  execFileSync("tar", ["xOf", archive(path), member], { maxBuffer: 1 << 28 }).subarray(0, 20_000);

/** Beginnings of real files of several formats: what a reader gets when it is asked by mistake. */
const STRANGERS: readonly (readonly [string, Buffer])[] = [
  ["a dump", part("recordings/hang3.tar.gz", "hang3/fr_timeout_rank_3")],
  ["a log", part("recordings/hang3.tar.gz", "hang3/rank0.log")],
  ["stacks", part("recordings/hang3.tar.gz", "hang3/stacks.rank3.txt")],
  ["RAS", part("recordings/hang3.tar.gz", "hang3/ncclras.txt")],
  ["JSON", Buffer.from('{"a": [1, {"b": null}], "traceEvents": [{"ph": "X", "ts": "x"}]}')],
  ["a table", Buffer.from("step,time,loss\n1,0.5,nan\n2,,\n\n,,,,,,\n")],
  ["nothing", Buffer.alloc(0)],
];

describe.each(readersFor({}).map((reader) => [reader.format, reader] as const))(
  "%s",
  (_, reader) => {
    it.each(STRANGERS)("survives %s", (_name, bytes) => {
      const whole = readBytes(reader, "file.rank3", bytes);
      expect(Array.isArray(whole.defects)).toBe(true);
      expect(readBytes(reader, "file.rank3", bytes, 7)).toEqual(whole);
    });

    it("survives random bytes, and random changes of real ones, in chunks of any size", () => {
      fc.assert(
        fc.property(
          fc.oneof(
            fc.uint8Array({ maxLength: 300 }),
            fc
              .tuple(
                fc.constantFrom(...STRANGERS.map(([, bytes]) => bytes.subarray(0, 2_000))),
                fc.array(fc.tuple(fc.nat(1_999), fc.nat(255)), { maxLength: 20 }),
              )
              .map(([bytes, changes]) => {
                const changed = Uint8Array.from(bytes);
                for (const [at, value] of changes) if (at < changed.length) changed[at] = value;
                return changed;
              }),
          ),
          fc.integer({ min: 1, max: 64 }),
          (bytes, size) => {
            expect(Array.isArray(readBytes(reader, "x", bytes, size).defects)).toBe(true);
          },
        ),
        { numRuns: runs(25, 300) },
      );
    });
  },
);
