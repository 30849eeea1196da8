import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COMPLETED, SCHEDULED } from "../../model/operators.ts";
import { makeHangCase, writeCase } from "../../../eval/generated-hangs/cases/hang-case.ts";
import { pickle } from "../../simulate/flight/pickle-writer.ts";
import { readAtAllSizes, readBytes, sniffs } from "../../../test/support/ingest/reader-contract.ts";
import { flightRecorder } from "./reader.ts";

const files = writeCase(
  makeHangCase({ tp: 2, pp: 2, dp: 1, seed: 3, fault: "cpu-stall", nuisances: { stacks: true } }),
);
const asJson = writeCase(
  makeHangCase({
    tp: 2,
    pp: 2,
    dp: 1,
    seed: 3,
    fault: "cpu-stall",
    nuisances: { stacks: true, json: 1 },
  }),
);
const first = files[0]!;

function entry(fields: Record<string, unknown>): Record<string, unknown> {
  return {
    record_id: 0,
    pg_id: 3,
    process_group: ["7", "PP"],
    profiling_name: "nccl:send 0->1",
    collective_seq_id: 0,
    p2p_seq_id: 1,
    state: "scheduled",
    retired: false,
    is_p2p: true,
    ...fields,
  };
}

function dumpOf(
  entries: Record<string, unknown>[],
  extra: Record<string, unknown> = {},
): Uint8Array {
  return Buffer.from(
    JSON.stringify({ version: "2.10", entries, pg_status: {}, pg_config: {}, ...extra }),
  );
}

describe("a flight-recorder dump", () => {
  it("is recognised and read whatever the size of the chunks", () => {
    expect(sniffs(flightRecorder, first.bytes)).toBe(true);
    const [whole, ...rest] = readAtAllSizes(flightRecorder, first.name, first.bytes).reverse();
    for (const reading of rest) expect(reading).toEqual(whole);
    expect(whole).toMatchObject({ rank: 0, defects: [], format: "flight-recorder" });
    expect(whole!.records).toBeGreaterThan(50);
  });

  it("says the same as its JSON twin, but for stacks and the last digits of times", () => {
    const left = readBytes(flightRecorder, first.name, first.bytes).dumps![0]!;
    const right = readBytes(flightRecorder, first.name, asJson[0]!.bytes).dumps![0]!;
    expect(sniffs(flightRecorder, asJson[0]!.bytes)).toBe(true);
    for (const column of [
      "group",
      "seq",
      "p2pSeq",
      "state",
      "isP2p",
      "peer",
      "isSend",
      "inputNumel",
    ] as const) {
      expect(right.ops[column]).toEqual(left.ops[column]);
    }
    expect(right.groups).toEqual(left.groups);
    expect(right.timing).toBe(left.timing);
    const at = left.ops.count - 1;
    const time = (dump: typeof left): bigint =>
      dump.epochNs + BigInt(Math.round(dump.ops.createdNs[at]!));
    expect(Number(time(left) - time(right))).toBeLessThan(1000);
    expect(left.frames.size).toBeGreaterThan(0);
    expect(right.frames.size).toBe(0);
  });

  it("cut anywhere keeps whole entries and says so", () => {
    let last = -1;
    for (let end = 2; end < first.bytes.length; end += 97) {
      const { records, defects } = readBytes(
        flightRecorder,
        first.name,
        first.bytes.subarray(0, end),
      );
      expect(defects.length).toBeGreaterThan(0);
      expect(records).toBeGreaterThanOrEqual(last);
      last = records;
    }
    expect(last).toBeGreaterThan(50);
  });

  it("with any of its bytes changed never throws", () => {
    const change = fc.tuple(fc.nat(first.bytes.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), (changes) => {
        const bytes = Buffer.from(first.bytes);
        for (const [at, byte] of changes) bytes[at] = byte;
        readBytes(flightRecorder, first.name, bytes);
      }),
      { numRuns: 300, seed: 6 },
    );
    fc.assert(
      fc.property(fc.json(), (text) => {
        readBytes(flightRecorder, "dump_0", text.startsWith("{") ? text : `{"entries":[${text}]}`);
      }),
      { numRuns: 500, seed: 7 },
    );
  });

  it("of a version that is not known is read as far as possible, and named", () => {
    const reading = readBytes(flightRecorder, "dump_0", dumpOf([entry({})], { version: "3.1" }));
    expect(reading.records).toBe(1);
    expect(reading.defects[0]?.what).toContain("3.1");
  });

  it("that is another pickle or another JSON is a defect, not a dump", () => {
    const other = readBytes(flightRecorder, "dump_0", pickle({ weights: [1, 2, 3] }));
    expect(other.dumps).toBeUndefined();
    expect(other.defects[0]?.what).toContain("not a flight-recorder dump");
    expect(readBytes(flightRecorder, "dump_0", '{"entries": [').defects[0]?.what).toContain("JSON");
  });

  it("of Gloo, whose states never move, is settled by the counters", () => {
    const gloo = {
      is_p2p: false,
      profiling_name: "gloo:all_reduce",
      process_group: ["0", "default_pg"],
      pg_id: 0,
    };
    const { dumps } = readBytes(
      flightRecorder,
      "dump_0",
      dumpOf([entry({ ...gloo, collective_seq_id: 1 }), entry({ ...gloo, collective_seq_id: 2 })], {
        pg_status: {
          0: {
            last_enqueued_collective: "2",
            last_started_collective: "-1",
            last_completed_collective: "1",
          },
        },
      }),
    );
    expect([...dumps![0]!.ops.state]).toEqual([COMPLETED, SCHEDULED]);
    expect(dumps![0]!.groups[0]).toMatchObject({ enqueued: 2, completed: 1, ranks: null });
  });
});
