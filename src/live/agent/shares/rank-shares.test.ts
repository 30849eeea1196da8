import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { TestRing, type TestRecord } from "../../../../test/support/live/ring.ts";
import { FLAG, KIND } from "../../../ingest/probe-ring/layout.ts";
import { SLOT_MS, UNKNOWN_SHARE, WHOLE_SHARE } from "../../../model/rank-shares.ts";
import { RankGroups } from "../rank-groups.ts";
import { inspectRing } from "../rings/ring-file.ts";
import { RingFollower } from "../rings/follow-ring.ts";
import { RankShares } from "./rank-shares.ts";
import { reportOf, type SlotRow } from "./shares-report.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-shares-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The ring's clock is the time of day less this. */
const OFFSET_NS = 1.7e18;
const FIRST = OFFSET_NS / 1e6 / SLOT_MS;
let rings = 0;

class Played {
  readonly ring = new TestRing({ folder, job: `job${rings++}`, records: 64 });
  readonly rows: SlotRow[] = [];
  readonly #follower: RingFollower;
  readonly #groups = new RankGroups();
  readonly #shares: RankShares;

  constructor() {
    this.ring.communicator(0, "dp", 2);
    this.ring.communicator(1, "alone", 1);
    this.ring.communicator(2, "pair", 2, { rank: 1 });
    const ring = inspectRing(this.ring.path);
    if (typeof ring === "string") throw new Error(ring);
    this.#follower = new RingFollower(ring, { keepNs: 1e18, mostRecords: 256 });
    this.#shares = new RankShares(this.#follower, this.#groups);
  }

  /** A collective with its times in milliseconds; `more` may make it another operator. */
  add(
    issuedMs: number,
    startedMs: number,
    endedMs: number,
    more: Partial<TestRecord> = {},
  ): number {
    return this.ring.append(recordOf(issuedMs, startedMs, endedMs, more));
  }

  change(ticket: number, issuedMs: number, startedMs: number, endedMs: number): void {
    this.ring.update(ticket, recordOf(issuedMs, startedMs, endedMs));
  }

  /** The agent looks, so many milliseconds after the start. */
  look(ms: number): SlotRow[] {
    this.#follower.poll(ms * 1e6);
    this.#groups.look(this.#follower);
    const from = this.rows.length;
    this.#shares.take(OFFSET_NS / 1e6 + ms, OFFSET_NS, (row) => this.rows.push(row));
    return this.rows.slice(from);
  }
}

function recordOf(
  issuedMs: number,
  startedMs: number,
  endedMs: number,
  more: Partial<TestRecord> = {},
): TestRecord {
  const ns = (ms: number): bigint => BigInt(ms) * 1_000_000n;
  return {
    kind: KIND.collective,
    group: 0,
    issuedNs: ns(issuedMs),
    startedNs: ns(startedMs),
    endedNs: ns(endedMs),
    ...more,
  };
}

const told = ({ slot, inside, late, gpu }: SlotRow): (string | number)[] => [
  slot - FIRST,
  inside.toFixed(2),
  late.toFixed(2),
  gpu.toFixed(2),
];

describe("shares of a rank's ring", () => {
  it("are told of slots that are over, from the one behind the first operator's on", () => {
    const played = new Played();
    played.add(100, 200, 300);
    played.add(400, 600, 700);
    played.add(800, 1100, 1300);
    expect(played.look(1100)).toEqual([]);
    // Operators are written down a moment after they began.
    expect(played.look(1210).map(told)).toEqual([[1, "0.20", "0.20", "0.60"]]);
    expect(played.look(1800).map(told)).toEqual([[2, "0.40", "0.40", "0.20"]]);
    expect(played.rows.map(({ issued, ended }) => [issued, ended])).toEqual([
      [1, 1],
      [0, 1],
    ]);
  });

  it("count an operator that goes on as inside, and read it until it has ended", () => {
    const played = new Played();
    played.add(100, 200, 300);
    const open = played.add(400, 600, 0);
    expect(played.look(1800).map(told)).toEqual([
      [1, "0.80", "0.00", "0.20"],
      [2, "1.00", "0.00", "0.00"],
    ]);
    played.change(open, 400, 600, 1600);
    expect(played.look(2300).map(told)).toEqual([[3, "0.20", "0.80", "0.00"]]);
    expect(played.rows.map(({ ended }) => ended)).toEqual([0, 0, 1]);
  });

  it("leave out what NCCL does nothing for, what nobody times, and the shim's copies", () => {
    const played = new Played();
    played.add(100, 200, 300);
    played.add(500, 510, 990, { group: 1 });
    played.add(500, 510, 990, { kind: KIND.p2p, group: 2, c: 1 });
    played.add(500, 0, 0, { flags: FLAG.untimed });
    played.add(500, 510, 990, { flags: FLAG.shim });
    played.add(500, 510, 990, { flags: FLAG.failed });
    played.add(500, 510, 990, { kind: KIND.matrix });
    expect(played.look(1300).map(told)).toEqual([[1, "0.00", "1.00", "0.00"]]);
  });

  it("are not told without operators of a plug-in, nor behind the process' end", () => {
    const shim = new Played();
    shim.add(100, 200, 300, { flags: FLAG.shim });
    expect(shim.look(5000)).toEqual([]);
    const ended = new Played();
    ended.add(100, 200, 300);
    ended.ring.long(776, 1_200_000_000n);
    expect(ended.look(5000).map(({ slot }) => slot - FIRST)).toEqual([1]);
  });

  it("have of each wire what its operators took, transfers among two alone", () => {
    const played = new Played();
    played.add(100, 200, 300);
    played.add(400, 600, 700);
    played.add(700, 720, 760);
    played.add(760, 770, 790, { kind: KIND.p2p, func: 1, group: 2, c: 0 });
    expect(played.look(1300)[0]!.wires).toEqual([
      { key: "0000000000000001", ms: (100 + 40) / 2, count: 2 },
      { key: "0000000000000003", ms: 20, count: 1 },
    ]);
  });

  it("have what was on the wire, told later where it is known later, and never more than there is time", () => {
    const code = (us: number): number => (((us >> 4) | (4 << 12)) << 16) >>> 0;
    const played = new Played();
    played.ring.sends(0, 0, 1, 1000);
    played.add(100, 200, 300);
    const silent = played.add(400, 600, 700);
    played.add(760, 770, 790, { d: code(20_000) });
    played.add(800, 810, 990, { kind: KIND.p2p, func: 2, group: 2, c: 0, d: code(60_000) });
    expect(played.look(1300).map(({ onWire }) => onWire.toFixed(2))).toEqual(["0.04"]);
    // Its last send is through after its kernel has ended.
    played.ring.update(
      silent,
      recordOf(400, 600, 700, { d: (((40_000 >> 5) | (5 << 12)) << 16) >>> 0 }),
    );
    played.add(1500, 1510, 1520, { d: ((0xfff | (9 << 12)) << 16) >>> 0 });
    expect(played.look(3300).map(({ onWire }) => onWire.toFixed(2))).toEqual([
      "0.08",
      "1.00",
      "1.00",
      "1.00",
    ]);
  });
});

describe("a report", () => {
  it("has the slots of all ranks side by side, and of a wire the member that waited least", () => {
    const row = (slot: number, ms: number): SlotRow => ({
      slot,
      inside: 0.5,
      late: 0.25,
      gpu: 0.25,
      onWire: 2,
      issued: 1e6,
      ended: 3,
      wires: [{ key: "a", ms, count: slot }],
    });
    const head = { job: "j", run: "r", ranks: [4, 7], firstSlot: 10 };
    const report = reportOf(
      head,
      [
        [row(10, 5), row(11, 6)],
        [row(11, 4), row(12, 9)],
      ],
      2,
    );
    expect([...report.inside]).toEqual([
      WHOLE_SHARE / 2,
      UNKNOWN_SHARE,
      WHOLE_SHARE / 2,
      WHOLE_SHARE / 2,
    ]);
    expect([...report.onWire]).toEqual([WHOLE_SHARE, UNKNOWN_SHARE, WHOLE_SHARE, WHOLE_SHARE]);
    expect(report.issued[0]).toBe(WHOLE_SHARE);
    expect([report.wires, [...report.wireMs], [...report.wireCount]]).toEqual([
      ["a"],
      [5, 4],
      [10, 11],
    ]);
  });
});
