import { describe, expect, test } from "vitest";
import type { DumpOptions } from "./flight-recorder.ts";
import { FLIGHT_VERSIONS, flightDump } from "./flight-recorder.ts";
import { flightJson } from "../../../eval/generated-hangs/cases/flight-json.ts";
import type { HangCase } from "../../../eval/generated-hangs/cases/hang-case.ts";
import { makeHangCase } from "../../../eval/generated-hangs/cases/hang-case.ts";
import type { PyRecord, PyTuple } from "./pickle-writer.ts";

const hang = makeHangCase({
  tp: 2,
  pp: 4,
  dp: 2,
  seed: 11,
  fault: "gpu-hang",
  program: { pipelineWarmUp: true },
});

function dumpOf(rank: number, change: Partial<DumpOptions> = {}, of: HangCase = hang): PyRecord {
  const records = of.ranks[rank];
  const plan = of.files[rank];
  if (!records || !plan) throw new Error(`no rank ${rank}`);
  return flightDump(records, of.groups, { ...plan.options, ...change });
}
const entriesOf = (dump: PyRecord): readonly PyRecord[] => dump["entries"] as readonly PyRecord[];
const mapOf = (dump: PyRecord, key: string): ReadonlyMap<string, PyRecord> =>
  dump[key] as ReadonlyMap<string, PyRecord>;

describe("a flight-recorder dump", () => {
  test("names the library from 2.6 on, by another key from 2.10 on", () => {
    const keys = FLIGHT_VERSIONS.map((version) => {
      const dump = dumpOf(0, { version });
      return [dump["nccl_version"] !== undefined, dump["comm_lib_version"] !== undefined];
    });
    expect(keys).toEqual([
      [false, false],
      [false, false],
      [true, false],
      [true, false],
      [true, false],
      [true, false],
      [false, true],
    ]);
  });

  test("tells the calling thread in newer versions only", () => {
    const first = (version: DumpOptions["version"]): PyRecord | undefined =>
      entriesOf(dumpOf(0, { version }))[0];
    expect(first("2.7")?.["thread_name"]).toBeUndefined();
    expect(first("2.9")?.["thread_name"]).toBe("python3");
  });

  test("keys groups by name as text, and counters by the rank's own number", () => {
    const dump = dumpOf(13);
    const names = [...mapOf(dump, "pg_config").keys()];
    expect(names).toEqual(names.toSorted());
    expect(names).not.toEqual(names.toSorted((a, b) => Number(a) - Number(b)));
    expect([...mapOf(dump, "pg_status").keys()]).toEqual(["0", "1", "2", "3"]);
    for (const entry of entriesOf(dump)) {
      const [name, desc] = (entry["process_group"] as PyTuple).items;
      expect(mapOf(dump, "pg_config").get(name as string)?.["desc"]).toBe(desc);
    }
  });

  test("writes members as text", () => {
    expect(mapOf(dumpOf(13), "pg_config").get("0")?.["ranks"]).toBe(
      "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]",
    );
  });

  test("names P2P by group ranks, numbers it by itself and keeps the group's stale collective", () => {
    const p2p = entriesOf(dumpOf(5)).filter((entry) => entry["is_p2p"] === true);
    expect(p2p[0]?.["profiling_name"]).toBe("nccl:recv 1<-0");
    expect(p2p.map((entry) => entry["p2p_seq_id"])).toEqual(p2p.map((_, i) => i + 1));
    expect(p2p.every((entry) => entry["collective_seq_id"] === 1)).toBe(true);
    expect(p2p.map((entry) => entry["op_id"])).toEqual(p2p.map((_, i) => i + 2));
  });

  test("counts what the entries show", () => {
    for (const rank of hang.ranks.keys()) {
      const dump = dumpOf(rank);
      for (const [id, counters] of mapOf(dump, "pg_status")) {
        const own = entriesOf(dump).filter((entry) => entry["pg_id"] === Number(id));
        const number = (entry: PyRecord | undefined): unknown =>
          entry?.[entry["is_p2p"] === true ? "p2p_seq_id" : "collective_seq_id"];
        const last = (states: string[]): unknown =>
          number(own.findLast((entry) => states.includes(entry["state"] as string)));
        expect(counters["last_enqueued_collective"]).toBe(number(own.at(-1)));
        expect(counters["last_started_collective"]).toBe(last(["started", "completed"]));
        expect(counters["last_completed_collective"]).toBe(last(["completed"]));
      }
    }
  });

  test("shows a hung GPU as one that started nothing, among ranks that all wait inside one", () => {
    hang.ranks.forEach((_, rank) => {
      const started = entriesOf(dumpOf(rank)).filter((entry) => entry["state"] === "started");
      expect(started.length).toBe(hang.truth.ranks.includes(rank) ? 0 : 1);
    });
  });

  test("knows nothing of starts without timing", () => {
    const dump = dumpOf(0, { timing: false });
    for (const entry of entriesOf(dump)) {
      expect(["scheduled", "completed"]).toContain(entry["state"]);
      expect(entry["duration_ms"]).toBeUndefined();
      expect(entry["time_discovered_started_ns"]).toBeNull();
    }
    for (const counters of mapOf(dump, "pg_status").values())
      expect(counters["last_started_collective"]).toBe(-1);
  });

  test("drops the oldest entries, or all completed ones, but no counters", () => {
    const all = entriesOf(dumpOf(0)).map((entry) => entry["record_id"]);
    const kept = dumpOf(0, { ringSize: 10 });
    expect(entriesOf(kept).map((entry) => entry["record_id"])).toEqual(all.slice(-10));
    const active = dumpOf(0, { onlyActive: true });
    expect(entriesOf(active).every((entry) => entry["state"] !== "completed")).toBe(true);
    const empty = dumpOf(0, { entries: false });
    expect(empty["entries"]).toEqual([]);
    for (const dump of [kept, active, empty])
      expect(dump["pg_status"]).toEqual(dumpOf(0)["pg_status"]);
  });

  test("writes batches as parts that never move and an entry that closes them", () => {
    const single = entriesOf(dumpOf(5));
    const batched = entriesOf(dumpOf(5, { batched: true }));
    expect(batched.map((entry) => entry["record_id"])).toEqual(batched.map((_, i) => i));
    const isClosing = (entry: PyRecord): boolean => entry["profiling_name"] === "nccl:coalesced";
    for (const [i, entry] of batched.entries()) {
      if (entry["is_p2p"] !== true) continue;
      const next = batched[i + 1]!;
      expect([entry["state"], entry["retired"], isClosing(next)]).toEqual([
        "scheduled",
        false,
        true,
      ]);
      expect([next["is_p2p"], next["p2p_seq_id"]]).toEqual([false, entry["p2p_seq_id"]]);
    }
    const known = batched.filter((entry) => entry["is_p2p"] !== true);
    expect(known.map((entry) => entry["state"])).toEqual(single.map((entry) => entry["state"]));
    const active = entriesOf(dumpOf(5, { batched: true, onlyActive: true }));
    expect(active.filter((entry) => entry["is_p2p"] === true).length).toBe(
      batched.filter(isClosing).length,
    );
    expect(active.every((entry) => entry["state"] !== "completed")).toBe(true);
  });

  test("carries stacks only when asked, each frame of the script once", () => {
    expect(entriesOf(dumpOf(0))[0]?.["frames"]).toBeUndefined();
    const stacked = entriesOf(dumpOf(0, { stacks: true }));
    expect(stacked.every((entry) => (entry["frames"] as unknown[]).length >= 3)).toBe(true);
  });
});

describe("its JSON twin", () => {
  const twinOf = (dump: PyRecord): Record<string, unknown> =>
    JSON.parse(Buffer.from(flightJson(dump)).toString()) as Record<string, unknown>;

  test("writes counters as strings, missing times as 0, tuples as lists, and no stacks", () => {
    const dump = dumpOf(0, { stacks: true, timing: true });
    const twin = twinOf(dump);
    const status = twin["pg_status"] as Record<string, Record<string, unknown>>;
    const before = mapOf(dump, "pg_status").get("1")?.["last_enqueued_collective"];
    expect(status["1"]?.["last_enqueued_collective"]).toBe(`${before as number}`);
    const entries = twin["entries"] as Record<string, unknown>[];
    const pending = entries.find((entry) => entry["state"] === "scheduled");
    expect(pending?.["time_discovered_completed_ns"]).toBe(0);
    expect(pending?.["time_discovered_started_ns"]).toBe(0);
    expect(pending?.["process_group"]).toBeInstanceOf(Array);
    expect(pending).not.toHaveProperty("frames");
  });

  test("sorts keys and keeps nanoseconds to the last digit", () => {
    const text = Buffer.from(flightJson(dumpOf(0))).toString();
    const created = entriesOf(dumpOf(0))[0]?.["time_created_ns"] as bigint;
    expect(text).toContain(`"time_created_ns":${created}`);
    const entry = (twinOf(dumpOf(0))["entries"] as object[])[0] ?? {};
    expect(Object.keys(entry)).toEqual(Object.keys(entry).toSorted());
  });

  test("has no list of entries when there are none", () => {
    expect(twinOf(dumpOf(0, { entries: false }))).not.toHaveProperty("entries");
  });
});
