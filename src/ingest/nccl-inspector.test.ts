import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COMPLETED } from "../model/operators.ts";
import type { OperatorLog } from "../model/operators.ts";
import type { Reading } from "../model/reading.ts";
import { recognise } from "./formats.ts";
import { ncclInspector } from "./nccl-inspector.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";
import { runs } from "../../test/support/cases.ts";

const DUMP_US = 1_800_000_000_000_000;
const WORLD = { id: "0xa1", comm_name: "default_pg", rank: 5, n_ranks: 8, nnodes: 2 };
const TP = { id: "0xb2", comm_name: "unknown", rank: 1, n_ranks: 2, nnodes: 1 };

const metadata = (version = "v4.2", host = "node7", pid = 4711) => ({
  inspector_output_format_version: version,
  git_rev: "",
  rec_mechanism: "nccl_profiler_interface",
  dump_timestamp_us: DUMP_US,
  hostname: host,
  pid,
});
/** Times as the verbose form has them, microseconds after DUMP_US; null for the plain form. */
const trace = (kind: string, at: number | null, kernel: number[][]) =>
  at === null
    ? {}
    : {
        event_trace_sn: { [`${kind}_start_sn`]: 1, [`${kind}_stop_sn`]: 2, kernel_events: [] },
        event_trace_ts: {
          [`${kind}_start_ts`]: DUMP_US + at,
          [`${kind}_stop_ts`]: DUMP_US + at + 5,
          kernel_events: kernel.map(([start, stop], channel) => ({
            channel_id: channel,
            kernel_start_ts: start === 0 ? 0 : DUMP_US + start!,
            kernel_stop_ts: stop === 0 ? 0 : DUMP_US + stop!,
            kernel_record_ts: stop === 0 ? 0 : DUMP_US + stop!,
          })),
        },
      };
const coll = (name: string, sn: number, at: number | null = null, kernel: number[][] = []) => ({
  coll_perf: {
    coll: name,
    coll_algo: "RING",
    coll_proto: "LL",
    coll_sn: sn,
    coll_msg_size_bytes: 1_048_576,
    coll_exec_time_us: 619,
    coll_timing_source: "kernel_gpu",
    coll_algobw_gbs: "nan",
    coll_busbw_gbs: 3,
    ...trace("coll", at, kernel),
  },
});
const p2p = (name: string, sn: number, peer: number, at: number | null = null) => ({
  p2p_perf: {
    p2p: name,
    p2p_sn: sn,
    p2p_peer: peer,
    p2p_msg_size_bytes: 8192,
    p2p_exec_time_us: 40,
    p2p_timing_source: "kernel_gpu",
    p2p_algobw_gbs: 1,
    p2p_busbw_gbs: 1,
    ...trace("p2p", at, []),
  },
});
const stats = (collectives: number, sends: number, dropped = 0, proxies?: number) => ({
  dump_stats: {
    coll_records: collectives,
    coll_dropped_total: 10 * dropped,
    coll_dropped_since_last_dump: dropped,
    p2p_records: sends,
    p2p_dropped_total: 0,
    p2p_dropped_since_last_dump: 0,
    ...(proxies === undefined ? {} : { proxy_records: proxies }),
  },
});
const lines = (...records: object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("");
const whole = (header: object, body: object, meta: object = metadata()): object => ({
  header,
  metadata: meta,
  ...body,
});

const read = (text: string): Reading => readBytes(ncclInspector, "node7-pid4711.log", text);
const only = ({ operators }: Reading): OperatorLog => {
  expect(operators).toHaveLength(1);
  return operators![0]!;
};
const namesOf = ({ ops }: OperatorLog): string[] => [...ops.name].map((name) => ops.names[name]!);

const PLAIN = lines(
  whole(WORLD, coll("AllReduce", 1407)),
  whole(WORLD, coll("All2All", 3)),
  whole(TP, p2p("Send", 9, 0)),
  whole(TP, p2p("Recv", 10, 0)),
  whole(TP, coll("ReduceScatter", 12)),
);
const VERBOSE = lines(
  whole(WORLD, coll("AllReduce", 7, 300, [[0, 0]])),
  whole(WORLD, coll("AllGather", 3, 900, [])),
  whole(
    TP,
    coll("AllReduce", 2, 100, [
      [150, 700],
      [140, 680],
      [0, 0],
    ]),
  ),
  whole(TP, p2p("Send", 1, 0, 500)),
);
const V43 = lines(
  whole(WORLD, stats(2, 0, 5), metadata("v4.3")),
  coll("AllReduce", 1),
  coll("AllReduce", 2),
  whole(TP, stats(1, 1, 2, 1), metadata("v4.3")),
  coll("AllReduce", 8),
  p2p("Send", 1, 0),
  { proxy_trace: { record_type: "proxy_op", record_sn: 42 } },
  whole(WORLD, stats(1, 0), metadata("v4.3")),
  coll("AllReduce", 3),
);

describe("NCCL Inspector", () => {
  it("turns a process's lines into one table over its communicators", () => {
    const reading = read(PLAIN);
    expect(reading).toMatchObject({ format: "nccl-inspector", records: 5, defects: [], rank: 5 });
    const log = only(reading);
    expect(log).toMatchObject({ host: "node7", pid: 4711, rank: 5, format: "nccl-inspector" });
    expect(log.groups.map(({ name, desc, ranks }) => [name, desc, ranks])).toEqual([
      ["0xa1", "default_pg", null],
      ["0xb2", "", null],
    ]);
    const { ops } = log;
    expect(namesOf(log)).toEqual([
      "all_reduce",
      "all_to_all",
      "send 1->0",
      "recv 1<-0",
      "reduce_scatter",
    ]);
    expect([...ops.group]).toEqual([0, 0, 1, 1, 1]);
    expect([...ops.seq]).toEqual([1407, 3, 0, 0, 12]);
    expect([...ops.p2pSeq]).toEqual([0, 0, 9, 10, 0]);
    expect([...ops.isP2p]).toEqual([0, 0, 1, 1, 0]);
    expect([...ops.isSend]).toEqual([0, 0, 1, 0, 0]);
    expect([...ops.peer]).toEqual([-1, -1, 0, 0, -1]);
    expect([...ops.inputNumel]).toEqual([1_048_576, 1_048_576, 8192, 8192, 1_048_576]);
    expect(ops.durationMs[0]).toBeCloseTo(0.619, 6);
    expect(new Set(ops.state)).toEqual(new Set([COMPLETED]));
    for (const column of [ops.createdNs, ops.startedNs, ops.completedNs])
      expect([...column].every(Number.isNaN)).toBe(true);
    expect(log.epochNs).toBe(BigInt(DUMP_US) * 1000n);
  });

  it("takes the verbose form's times, and sorts by them", () => {
    const log = only(read(VERBOSE));
    expect(namesOf(log)).toEqual(["all_reduce", "all_reduce", "send 1->0", "all_gather"]);
    expect(log.epochNs).toBe(BigInt(DUMP_US + 100) * 1000n);
    const { ops } = log;
    expect([...ops.recordId]).toEqual([2, 0, 3, 1]);
    expect([...ops.group]).toEqual([1, 0, 1, 0]);
    expect([...ops.createdNs]).toEqual([0, 200_000, 400_000, 800_000]);
    // The GPU's start and end over all channels; the CPU's start where no channel saw any.
    expect([...ops.startedNs]).toEqual([40_000, 200_000, 400_000, 800_000]);
    expect([...ops.completedNs]).toEqual([600_000, NaN, NaN, NaN]);
  });

  it("keeps the file's order where some operators have no time", () => {
    const text = VERBOSE + lines(whole(WORLD, coll("Broadcast", 1)));
    expect([...only(read(text)).ops.recordId]).toEqual([0, 1, 2, 3, 4]);
  });

  it("carries header and metadata of v4.3 from a dump's marker to its lines", () => {
    const reading = read(V43);
    const log = only(reading);
    expect([...log.ops.group]).toEqual([0, 0, 1, 1, 0]);
    expect([...log.ops.seq]).toEqual([1, 2, 8, 0, 3]);
    expect(reading.defects.map(({ what }) => what)).toEqual([
      "7 operators were dropped by the ring before they were written",
    ]);
  });

  it("gives no communicator to lines whose marker is lost", () => {
    const rows = V43.split("\n");
    rows[3] = rows[3]!.slice(20);
    const reading = read(rows.join("\n"));
    expect([...only(reading).ops.seq]).toEqual([1, 2, 3]);
    expect(reading.defects.slice(1)).toEqual([
      {
        file: "node7-pid4711.log",
        what: "1 line cannot be read; the first is this one",
        line: 4,
      },
      {
        file: "node7-pid4711.log",
        what: "2 lines without a communicator or process; the first is this one",
        line: 5,
      },
    ]);
  });

  it("says what a dump announces and the file lacks", () => {
    const cut = V43.slice(0, V43.lastIndexOf("coll_sn"));
    expect(read(cut).defects.map(({ what }) => what.split(";")[0])).toContain(
      "1 line cannot be read",
    );
    const short = V43.split("\n").slice(0, 2).join("\n");
    expect(read(short).defects.map(({ what }) => what)).toContain(
      "1 record announced by dump_stats but not in the file",
    );
  });

  it("reads v4.1's markers beside lines that carry their own header", () => {
    const meta = metadata("v4.1");
    const text = lines(
      whole(WORLD, stats(1, 0), meta),
      whole(WORLD, coll("AllReduce", 1), meta),
      whole(TP, stats(1, 0), meta),
      whole(TP, coll("AllReduce", 1), meta),
    );
    const reading = read(text);
    expect(reading.defects).toEqual([]);
    expect([...only(reading).ops.group]).toEqual([0, 1]);
  });

  it("reads sends of releases that call them collectives", () => {
    const { ops } = only(read(lines(whole(WORLD, coll("Send", 4)))));
    expect([
      ops.names,
      ops.isP2p[0],
      ops.isSend[0],
      ops.peer[0],
      ops.p2pSeq[0],
      ops.seq[0],
    ]).toEqual([["send"], 1, 1, -1, 4, 0]);
  });

  it("knows the job's rank only from a communicator larger than all others", () => {
    const other = { ...WORLD, id: "0xc3", rank: 2 };
    const rankOf = (...headers: object[]): number | null =>
      only(read(lines(...headers.map((header) => whole(header, coll("AllReduce", 1)))))).rank;
    expect(rankOf(TP)).toBe(1);
    expect(rankOf(TP, WORLD)).toBe(5);
    expect(rankOf(TP, WORLD, other)).toBeNull();
    expect(rankOf(WORLD, { ...WORLD, rank: 6 })).toBeNull();
  });

  it("keeps processes apart that somebody put into one file", () => {
    const text = PLAIN + lines(whole(WORLD, coll("AllReduce", 1), metadata("v4.0", "node8", 1)));
    const reading = read(text);
    expect(reading.operators?.map(({ host, ops }) => [host, ops.count])).toEqual([
      ["node7", 5],
      ["node8", 1],
    ]);
    expect(reading.rank).toBeNull();
  });

  it("names a format that it does not know, and reads on", () => {
    const reading = read(lines(whole(WORLD, coll("AllReduce", 1), metadata("v5.0"))));
    expect(reading.records).toBe(1);
    expect(reading.defects[0]?.what).toContain("v5.0");
  });

  it("grows, and sorts many operators", () => {
    const many = Array.from({ length: 3000 }, (_, i) =>
      whole(WORLD, coll("AllReduce", i, 10 + ((i * 7919) % 3000))),
    );
    const { ops } = only(read(lines(...many)));
    expect(ops.count).toBe(3000);
    expect([...ops.createdNs]).toEqual(Array.from({ length: 3000 }, (_, i) => i * 1000));
    expect([...ops.seq].every((sn, i) => (sn * 7919) % 3000 === i)).toBe(true);
  });

  it("reads the same at every chunk size and survives a cut at every byte", () => {
    for (const text of [PLAIN, VERBOSE, V43]) {
      const [first, ...others] = readAtAllSizes(ncclInspector, "f", text);
      for (const other of others) expect(other).toEqual(first);
      for (const reading of readCutEverywhere(ncclInspector, "f", text, runs(5, 1)))
        expect(reading.records).toBeLessThanOrEqual(first!.records);
    }
  });

  it("survives random bytes and JSON of another shape", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (b) => void readBytes(ncclInspector, "f", b)),
    );
    const odd = fc.json().map(
      (j) =>
        `{"header":{"id":"0x1","rank":0,"n_ranks":${j}},"metadata":{"pid":${j}},"coll_perf":{"coll":"X","coll_sn":${j},"event_trace_ts":{"coll_start_ts":${j},"kernel_events":[${j}]}}}
{"header":${j},"metadata":${j},"dump_stats":{"coll_records":${j}}}
{"p2p_perf":${j}}
${j}`,
    );
    fc.assert(fc.property(odd, (text) => void read(text)));
  });

  it("recognises its format and nothing else", () => {
    for (const text of [PLAIN, VERBOSE, V43, lines(coll("AllReduce", 1))]) {
      expect(sniffs(ncclInspector, text)).toBe(true);
      expect(recognise({ name: "x.log", bytes: Buffer.from(text), text })).toBe(ncclInspector);
    }
    for (const text of ["", "{}", '{"header":{}}', "[1]", 'x "coll_perf": "coll_sn":'])
      expect(sniffs(ncclInspector, text)).toBe(false);
  });
});
