import { describe, expect, it } from "vitest";
import { SLOT_MS, UNKNOWN_SHARE, WHOLE_SHARE } from "../../../model/rank-shares.ts";
import { BlockBuilder, type ToldShares } from "./blocks.ts";

const FIRST = 3.4e9;
const START_MS = FIRST * SLOT_MS;
const JOB = {
  ranks: [0, 1, 2, 3],
  groups: [
    { name: "a", places: [0, 1, 2, 3] },
    { name: "b", places: [0, 1] },
  ],
};

/** What the agent of some ranks tells of slots; `inside`: by rank and slot. */
function told(
  ranks: readonly number[],
  from: number,
  slots: number,
  inside: (rank: number, slot: number) => number = () => 0.5,
  ended = 10,
): ToldShares {
  const column = (of: (rank: number, slot: number) => number): Uint16Array =>
    Uint16Array.from({ length: slots * ranks.length }, (_, i) =>
      of(ranks[i % ranks.length]!, from + Math.floor(i / ranks.length)),
    );
  const share = (value: number): number =>
    Number.isNaN(value) ? UNKNOWN_SHARE : Math.round(value * WHOLE_SHARE);
  return {
    ranks,
    firstSlot: FIRST + from,
    wires: ["b"],
    inside: column((rank, slot) => share(inside(rank, slot))),
    late: column(() => share(0.1)),
    gpu: column(() => share(0.4)),
    onWire: column(() => share(0.2)),
    issued: column(() => 10),
    ended: column(() => ended),
    wireMs: Float32Array.from({ length: slots }, () => 2 + ranks[0]!),
    wireCount: new Uint16Array(slots).fill(5),
  };
}

/** When the slot is over. */
const endOf = (slot: number): number => START_MS + (slot + 1) * SLOT_MS;

describe("blocks", () => {
  it("are half seconds while iterations are not known, of all agents together", () => {
    const builder = new BlockBuilder(JOB, ["a", "b"]);
    builder.take(told([0, 1], 0, 2), endOf(1));
    expect(builder.due(endOf(1))).toEqual([]);
    builder.take(
      told([2, 3], 0, 2, (rank) => rank / 10),
      endOf(1),
    );
    const blocks = builder.due(endOf(1));
    expect(blocks.map(({ startMs, lengthMs }) => [startMs, lengthMs])).toEqual([
      [START_MS, SLOT_MS],
      [START_MS + SLOT_MS, SLOT_MS],
    ]);
    const [block] = blocks;
    expect([...block!.inside].map((share) => share.toFixed(2))).toEqual([
      "0.50",
      "0.50",
      "0.20",
      "0.30",
    ]);
    expect([block!.iterations, block!.iterationMs]).toEqual([NaN, NaN]);
    // Of a wire the member that waited least counts, on whichever machine it is.
    expect([...block!.wireMs]).toEqual([NaN, 2]);
    expect([...block!.wireCount]).toEqual([0, 5]);
    expect(builder.due(endOf(9))).toEqual([]);
  });

  it("wait for ranks that were heard of lately, for some seconds", () => {
    const builder = new BlockBuilder(JOB, []);
    builder.take(told([0, 1, 2, 3], 0, 1), endOf(0));
    builder.take(told([0, 1], 1, 3), endOf(3));
    expect(builder.due(endOf(3)).length).toBe(1);
    const late = builder.due(endOf(1) + 3000);
    expect(late.map(({ inside }) => [...inside].map(Number.isNaN))).toEqual([
      [false, false, true, true],
    ]);
    // What comes too late is nobody's any more.
    builder.take(told([2, 3], 1, 1), endOf(1) + 3100);
    builder.take(told([2, 3], 2, 2), endOf(1) + 3100);
    expect(builder.due(endOf(1) + 3100).map(({ startMs }) => startMs)).toEqual([
      endOf(1),
      endOf(2),
    ]);
    // Of those who have not been heard of for long nobody waits.
    builder.take(told([0, 1], 4, 30), endOf(33));
    expect(builder.due(endOf(33)).length).toBe(30);
    builder.take(told([0, 1], 34, 1), endOf(34));
    expect(builder.due(endOf(34)).length).toBe(1);
  });

  it("end with the first slot behind an iteration's end, where iterations are longer", () => {
    const builder = new BlockBuilder(JOB, ["b"]);
    const all = [0, 1, 2, 3];
    for (const end of [1200, 2400, 3600]) builder.iterationEnded(START_MS + end, 1200);
    builder.take(
      told(all, 0, 10, (_, slot) => slot / 10),
      endOf(9),
    );
    const blocks = builder.due(endOf(9));
    expect(blocks.map(({ startMs, lengthMs }) => [startMs - START_MS, lengthMs])).toEqual([
      [0, 1500],
      [1500, 1000],
      [2500, 1500],
    ]);
    expect(blocks.map(({ iterations, iterationMs }) => [iterations, iterationMs])).toEqual([
      [1, 1200],
      [1, 1200],
      [1, 1200],
    ]);
    expect(blocks[0]!.inside[0]).toBeCloseTo(0.1, 3);
    expect(blocks[0]!.issued[0]).toBe(30);
    expect([blocks[0]!.wireMs[0], blocks[0]!.wireCount[0]]).toEqual([2, 15]);
    // The end of the fourth comes late, and a slot behind it is not lost.
    builder.iterationEnded(START_MS + 4800, 1200);
    expect(builder.due(endOf(9)).map(({ lengthMs }) => lengthMs)).toEqual([1000]);
  });

  it("do not wait for ever for an iteration that does not end, and tell how long nothing ended", () => {
    const builder = new BlockBuilder(JOB, []);
    builder.iterationEnded(START_MS - 100, 1000);
    builder.take(told([0, 1, 2, 3], 0, 10), endOf(9));
    builder.take(
      told([0, 1, 2, 3], 10, 30, () => 1, 0),
      endOf(39),
    );
    const blocks = builder.due(endOf(39));
    expect(blocks.map(({ lengthMs, silentMs }) => [lengthMs, silentMs])).toEqual([
      [8000, 3000],
      [8000, 8000],
    ]);
  });

  it("are not made of slots of a clock that is far ahead, nor of long ago", () => {
    const builder = new BlockBuilder(JOB, []);
    builder.take(told([0], 1000, 1), endOf(0));
    builder.take(told([1], -1000, 1), endOf(0));
    expect(builder.due(endOf(0) + 10_000)).toEqual([]);
    builder.take(told([0, 1, 2, 3], 0, 1), endOf(0));
    expect(builder.due(endOf(0)).map(({ startMs }) => startMs)).toEqual([START_MS]);
  });
});
