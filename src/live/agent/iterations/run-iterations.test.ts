import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PlayedRings } from "../../../../test/support/live/played-rings.ts";
import { TestRing } from "../../../../test/support/live/ring.ts";
import { KIND } from "../../../ingest/probe-ring/layout.ts";
import { RingFollower } from "../rings/follow-ring.ts";
import { inspectRing } from "../rings/ring-file.ts";
import { type PointRow, RankTrack } from "./rank-track.ts";
import { RunIterations } from "./run-iterations.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-iterations-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Recorded on one H200: eight ranks, TP 2 × DP 2 × PP 2, with the plug-in and the Python probe. */
const recorded = (name: string): string =>
  fileURLToPath(new URL(`../../../../fixtures/rings/${name}.tar.gz`, import.meta.url));

describe("iterations of a recorded job, from its calls alone", () => {
  it.each(["none", "wire-slow"])(
    "are those that the Python probe marked, on all ranks (%s)",
    (name) => {
      const played = new PlayedRings(recorded(name), folder);
      const run = new RunIterations();
      const rows: PointRow[] = [];
      for (let ns = played.firstNs; ns < played.lastNs + 2e9; ns += 1e9) {
        played.playTo(ns);
        run.tick(
          played.ranks.map(({ track }) => track),
          ns / 1e6,
        );
        for (const { track } of played.ranks) track.take((row) => rows.push(row));
      }
      for (const { rank, marks } of played.ranks) {
        const own = rows.filter((row) => row.rank === rank);
        const numbers = own.map(({ iteration }) => iteration);
        expect(numbers).toEqual(numbers.map((_, i) => numbers[0]! + i));
        expect(numbers[0]).toBe(2);
        expect(own.length).toBeGreaterThan(55);
        // Ends lie at the first call of the next iteration: durations over ten agree.
        const tenOf = (ms: readonly number[]): number =>
          ms.slice(30, 40).reduce((sum, one) => sum + one, 0);
        const truth = marks.slice(1).map(({ issuedNs, endedNs }) => (endedNs - issuedNs) / 1e6);
        const found = tenOf(own.map(({ durationMs }) => durationMs));
        expect(Math.abs(found / tenOf(truth) - 1)).toBeLessThan(0.1);
        expect(own.at(-1)!.collectiveMs).toBeGreaterThan(0);
      }
      played.close();
    },
    60_000,
  );
});

const MS = 1_000_000;
const ALL_REDUCE = 1;
const ALL_GATHER = 2;
const SEND = 1;

interface Call {
  readonly group: number;
  readonly func?: number;
  readonly elements: number;
  readonly peer?: number;
}

/** A rank whose calls a test writes. */
class CallingRank {
  readonly track: RankTrack;
  readonly #ring: TestRing;
  readonly #follower: RingFollower;
  readonly #seqs = new Map<string, number>();

  constructor(rank: number, groups: readonly { readonly id: bigint; readonly size: number }[]) {
    this.#ring = new TestRing({ folder, rank, records: 1 << 13, worldSize: 4 });
    for (const [i, { id, size }] of groups.entries())
      this.#ring.communicator(i, `group${i}`, size, { id, rank: 0 });
    const file = inspectRing(this.#ring.path);
    if (typeof file === "string") throw new Error(file);
    this.#follower = new RingFollower(file, { keepNs: 1e15, mostRecords: 1 << 13 });
    this.track = new RankTrack(rank);
    this.track.attach(null, this.#follower);
  }

  /** Issues calls, evenly spread over some milliseconds. */
  call(calls: readonly Call[], fromMs: number, lastMs: number): void {
    for (const [i, { group, func = ALL_REDUCE, elements, peer }] of calls.entries()) {
      const key = `${group} ${peer === undefined}`;
      const seq = (this.#seqs.get(key) ?? 0) + 1;
      this.#seqs.set(key, seq);
      const issuedNs = BigInt(Math.round((fromMs + (i * lastMs) / calls.length) * MS));
      this.#ring.append({
        kind: peer === undefined ? KIND.collective : KIND.p2p,
        func,
        group,
        a: elements,
        b: seq,
        c: peer ?? 0,
        issuedNs,
        startedNs: issuedNs,
        endedNs: issuedNs + 1000n,
      });
    }
    this.#follower.poll(Number.MAX_SAFE_INTEGER);
  }

  close(): void {
    this.#follower.close();
  }
}

const forward = Array.from({ length: 8 }, (): Call => ({ group: 0, elements: 65_536 }));
const backward = Array.from({ length: 8 }, (): Call => ({ group: 0, elements: 65_537 }));
const gradients = [4_000_000, 3_000_000, 1_000_000].map((elements): Call => ({
  group: 1,
  elements,
}));
const norm: Call = { group: 1, elements: 1 };
const step = [...forward, ...backward, ...gradients, norm];

function numbersOf(rows: readonly PointRow[], rank: number): number[] {
  return rows.filter((row) => row.rank === rank).map(({ iteration }) => iteration);
}

describe("iterations of calls that a test writes", () => {
  const groups = [
    { id: 0x10n, size: 2 },
    { id: 0x20n, size: 2 },
  ];
  const run = (
    ranks: readonly CallingRank[],
    iterations: RunIterations,
    atMs: number,
  ): PointRow[] => {
    const rows: PointRow[] = [];
    iterations.tick(
      ranks.map(({ track }) => track),
      atMs,
    );
    for (const { track } of ranks) track.take((row) => rows.push(row));
    return rows;
  };

  it("stand an evaluation, a checkpoint and a longer accumulation in between", () => {
    const rank = new CallingRank(0, groups);
    const iterations = new RunIterations();
    const rows: PointRow[] = [];
    let atMs = 1000;
    for (let i = 0; i < 120; i++) {
      // From 90 on two micro-batches an iteration.
      const calls = i < 90 ? step : [...forward, ...backward, ...step];
      rank.call(calls, atMs, 80);
      atMs += 100;
      if (i % 25 === 24) {
        rank.call(Array.from({ length: 5 }, () => forward).flat(), atMs, 40);
        rank.call([{ group: 1, func: ALL_GATHER, elements: 1 << 20 }], atMs + 40, 1);
        atMs += 50;
      }
      rows.push(...run([rank], iterations, atMs));
    }
    rank.close();
    const durations = rows.map(({ durationMs }) => Math.round(durationMs));
    expect(rows.length).toBeGreaterThanOrEqual(115);
    const numbers = numbersOf(rows, 0);
    expect(numbers.every((number, i) => i === 0 || number > numbers[i - 1]!)).toBe(true);
    // Each but those with something in between.
    expect(durations.filter((ms) => ms !== 100)).toEqual([150, 150, 150, 150]);
  });

  it("have the same number on stages of a pipeline that count by other communicators", () => {
    const first = new CallingRank(0, groups);
    const last = new CallingRank(1, [
      { id: 0x10n, size: 2 },
      { id: 0x30n, size: 2 },
    ]);
    // The last stage has called more before its first iteration: its own count runs ahead.
    last.call(
      Array.from({ length: 30 }, (): Call => ({ group: 1, func: ALL_GATHER, elements: 777 })),
      500,
      50,
    );
    const iterations = new RunIterations();
    const rows: PointRow[] = [];
    for (let i = 0; i < 60; i++) {
      const atMs = 1000 + 100 * i;
      first.call(
        [...forward, { group: 0, func: SEND, elements: 4096, peer: 1 }, ...backward, ...gradients],
        atMs,
        80,
      );
      last.call(
        [...forward, ...backward, ...gradients, { group: 1, elements: 5_000_000 }],
        atMs + 20,
        75,
      );
      rows.push(...run([first, last], iterations, atMs + 100));
    }
    first.close();
    last.close();
    const ends = (rank: number): Map<number, number> =>
      new Map(rows.filter((row) => row.rank === rank).map((row) => [row.iteration, row.endMs]));
    const [ours, theirs] = [ends(0), ends(1)];
    expect(ours.size).toBeGreaterThan(55);
    const apart = [...theirs].map(([number, endMs]) => Math.abs(endMs - (ours.get(number) ?? NaN)));
    expect(apart.filter((ms) => ms < 50).length).toBeGreaterThan(54);
  });

  it("count alike for an agent that comes late", () => {
    const rank = new CallingRank(0, groups);
    for (let i = 0; i < 40; i++) rank.call(step, 1000 + 100 * i, 80);
    const early = new RunIterations();
    const before = run([rank], early, 5000);
    const late = new RankTrack(0);
    late.attach(null, rank.track.native);
    for (let i = 40; i < 80; i++) {
      rank.call(step, 1000 + 100 * i, 80);
      before.push(...run([rank], early, 1100 + 100 * i));
    }
    const iterations = new RunIterations();
    const after: PointRow[] = [];
    for (let i = 0; i < 5; i++) {
      iterations.tick([late], 10_000 + i);
      late.take((row) => after.push(row));
    }
    rank.close();
    const [last, same] = [before.at(-1)!, after.at(-1)!];
    expect(same).toEqual(last);
  });

  it("are none where calls do not repeat", () => {
    const rank = new CallingRank(0, groups);
    const iterations = new RunIterations();
    const rows: PointRow[] = [];
    let state = 1;
    const any = (): number => (state = (state * 48_271) % 2_147_483_647);
    for (let i = 0; i < 60; i++) {
      const calls = Array.from({ length: 20 }, (): Call => {
        const group = any() % 2;
        return { group, func: 1 + (any() % 3), elements: 1 + (any() % 7) };
      });
      rank.call(calls, 1000 + 100 * i, 80);
      rows.push(...run([rank], iterations, 1100 + 100 * i));
    }
    rank.close();
    expect(rows).toEqual([]);
  });
});
