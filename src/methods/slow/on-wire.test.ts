import { describe, expect, it } from "vitest";
import { type Random, randomInt, seeded } from "../../base/random.ts";
import type { Rank } from "../../model/ids.ts";
import type { WireTimes } from "../../model/wire-times.ts";
import { timedRing } from "../../../test/support/methods/timed-proxies.ts";
import { lookOnWire, type OnWire, type SlowIterations } from "./on-wire.ts";

interface Played {
  readonly times: WireTimes;
  readonly totalMs: readonly number[];
  readonly slow: ReturnType<typeof picked>;
}

interface Culprit {
  /** By how much the hop between two members of a ring is slower. */
  factor(this: void, from: Rank, to: Rank): number;
}

const RINGS = 4;
const NORMAL = 8;
const STEPS = 60;
/** Milliseconds of an iteration without the network. */
const COMPUTE_MS = 100;

const picked = (slow: readonly number[]): Pick<SlowIterations, "isSlow" | "isLasting"> => ({
  isSlow: (iteration) => slow.includes(iteration),
  isLasting: false,
});

/** Rings of ranks; each iteration lasts as long as its slowest ring, or `hiccupMs` longer where somebody else stalls. */
function play(
  random: Random,
  size: number,
  culprit: Culprit,
  acts: readonly boolean[],
  hiccupMs: readonly number[] = [],
): Played {
  const rings = Array.from({ length: RINGS }, (_, k) =>
    Array.from({ length: size }, (__, i) => k + RINGS * i),
  );
  const links = rings.flatMap((ring) =>
    ring.map((from, i) => ({
      from,
      to: ring[(i + 1) % size]!,
      ms: new Float64Array(NORMAL + acts.length),
    })),
  );
  const totalMs: number[] = [];
  for (let iteration = 0; iteration < NORMAL + acts.length; iteration++) {
    const isActing = acts[iteration - NORMAL] === true;
    let longest = 0;
    for (const [k, ring] of rings.entries()) {
      const factors = ring.map((from, i) =>
        isActing ? culprit.factor(from, ring[(i + 1) % size]!) : 1,
      );
      const onWire = timedRing(factors, STEPS, random);
      for (const [i, ms] of onWire.entries()) links[k * size + i]!.ms[iteration] = ms;
      longest = Math.max(longest, ...onWire);
    }
    totalMs.push(COMPUTE_MS + longest + (hiccupMs[iteration - NORMAL] ?? 0));
  }
  const iterations = Float64Array.from(totalMs, (_, i) => i + 1);
  const slow = acts.flatMap((_, i) => (acts[i] || (hiccupMs[i] ?? 0) > 0 ? [NORMAL + i + 1] : []));
  return { times: { iterations, links }, totalMs, slow: picked(slow) };
}

const look = ({ times, totalMs, slow }: Played): OnWire => {
  const durationOf = (iteration: number): number =>
    totalMs[times.iterations.indexOf(iteration)] ?? NaN;
  return lookOnWire(times, { ...slow, durationOf });
};
const found = (one: Played): OnWire["found"] => look(one).found;
const link =
  (a: Rank, b: Rank, factor: number): Culprit["factor"] =>
  (from, to) =>
    (from === a && to === b) || (from === b && to === a) ? factor : 1;
const nic =
  (rank: Rank, factor: number): Culprit["factor"] =>
  (from, to) =>
    from === rank || to === rank ? factor : 1;
const HEALTHY: Culprit = { factor: () => 1 };

describe("what is on the wire in a ring", () => {
  it("grows at the slow hop alone, wherever in the ring it is", () => {
    for (let hop = 0; hop < 8; hop++) {
      const healthy = timedRing(Array<number>(8).fill(1), 200, seeded(hop));
      const factors = Array.from({ length: 8 }, (_, i) => (i === hop ? 6 : 1));
      for (const [i, ms] of timedRing(factors, 200, seeded(hop)).entries())
        expect(Math.abs(ms / healthy[i]! / (i === hop ? 6 : 1) - 1)).toBeLessThan(0.05);
    }
  });
});

describe("of slow iterations", () => {
  it("names the link or the NIC, of whatever ring", () => {
    for (let seed = 0; seed < 40; seed++) {
      const random = seeded(seed);
      const size = 3 + randomInt(random, 10);
      const ring = randomInt(random, RINGS);
      const at = randomInt(random, size);
      const rank = ring + RINGS * at;
      const next = ring + RINGS * ((at + 1) % size);
      const severity = 2 + 10 * random();
      const isNic = seed % 2 === 0;
      const factor = isNic ? nic(rank, severity) : link(rank, next, severity);
      expect(found(play(random, size, { factor }, [true, true, true]))).toMatchObject(
        isNic
          ? { kind: "nic", ranks: [rank] }
          : { kind: "link", ranks: [rank, next].sort((a, b) => a - b), isAmbiguous: false },
      );
    }
  });

  it("counts those that speak for it, and not the hiccups of others", () => {
    const acts = [true, false, true, false, true];
    const one = play(seeded(7), 6, { factor: link(5, 9, 5) }, acts, [0, 200, 0, 300, 0]);
    expect(found(one)).toMatchObject({ ranks: [5, 9], slow: [9, 11, 13], of: 5 });
    const two = play(seeded(7), 6, { factor: link(5, 9, 5) }, [true, true], [0, 0, 300]);
    expect(found(two)).toBeNull();
  });

  it("sees it where the tracker saw only the iteration after it, which lost what was left behind", () => {
    const one = play(seeded(4), 6, { factor: link(5, 9, 5) }, [true, true, true, true, true]);
    // What is slow on the wire in 9, 11 and 13 is hidden there, and makes 10, 12 and 14 late.
    const totalMs = one.totalMs.map((ms, i) => ([8, 10, 12].includes(i) ? one.totalMs[0]! : ms));
    for (const { ms } of one.times.links) [9, 11, 13].forEach((i) => (ms[i] = ms[0]!));
    totalMs.push(one.totalMs[9]!);
    const iterations = Float64Array.from(totalMs, (_, i) => i + 1);
    const links = one.times.links.map((own) => ({
      ...own,
      ms: Float64Array.of(...own.ms, own.ms[0]!),
    }));
    const slow = picked([10, 12, 14]);
    expect(found({ times: { iterations, links }, totalMs, slow })).toMatchObject({
      kind: "link",
      ranks: [5, 9],
      slow: [10, 12, 14],
    });
  });

  it("names nobody where all hops are as usual, or somebody computes slowly", () => {
    for (let seed = 0; seed < 20; seed++) {
      const none = [false, false, false, false];
      expect(found(play(seeded(seed), 8, HEALTHY, none, [50, 80, 60, 90]))).toBeNull();
      expect(found(play(seeded(seed), 8, HEALTHY, none, [1, 1, 1, 1]))).toBeNull();
    }
  });

  it("names no device where all that goes over a switch is slow", () => {
    const behind = (rank: Rank): boolean => rank % RINGS < 2;
    const factor = (from: Rank, to: Rank): number => (behind(from) || behind(to) ? 4 : 1);
    expect(found(play(seeded(3), 8, { factor }, [true, true, true]))).toBeNull();
  });

  it("in a group of two says that it may be the NIC, unless what else goes through it tells", () => {
    const one = play(seeded(5), 2, { factor: link(0, 4, 6) }, [true, true, true]);
    expect(found(one)).toMatchObject({ kind: "link", ranks: [0, 4], isAmbiguous: true });
    const { iterations, links } = one.times;
    const pipeline = (rank: Rank, isSlow: boolean) => ({
      from: rank,
      to: rank + 100,
      ms: iterations.map((number) => (isSlow && one.slow.isSlow(number) ? 6 : 1)),
    });
    const withPipeline = (isSlow: boolean): Played => ({
      ...one,
      times: { iterations, links: [...links, pipeline(0, isSlow), pipeline(4, false)] },
    });
    expect(found(withPipeline(true))).toMatchObject({ kind: "nic", ranks: [0] });
    expect(found(withPipeline(false))).toMatchObject({ ranks: [0, 4], isAmbiguous: false });
  });

  it("needs half of them where all are slow since one", () => {
    const acts = [true, true, true, false, false, false, false, false];
    const one = play(seeded(9), 6, { factor: nic(2, 6) }, acts, [0, 0, 0, 90, 90, 90, 90, 90]);
    expect(found(one)).toMatchObject({ kind: "nic", ranks: [2] });
    expect(found({ ...one, slow: { ...one.slow, isLasting: true } })).toBeNull();
  });

  it("clears a link or a NIC that is known to be as usual, and nobody else", () => {
    const one = play(seeded(2), 6, { factor: nic(2, 6) }, [true, true, true]);
    const { isFine } = look(one);
    expect([[2], [2, 6], [22, 2]].map(isFine)).toEqual([false, false, false]);
    expect([[10], [10, 14], [14, 10], [18, 22], [1]].map(isFine)).toEqual(Array(5).fill(true));
    // What a NIC is slow with may be too little to cost anything.
    const small = play(seeded(2), 6, HEALTHY, [false, false, false], [90, 90, 90]);
    const { ms } = small.times.links.find(({ from }) => from === 10)!;
    for (let i = 0; i < 3; i++) ms[NORMAL + i]! *= 1.4;
    expect(look(small).found).toBeNull();
    expect([[10], [10, 14], [14]].map(look(small).isFine)).toEqual([false, false, false]);
    // Nothing goes from one to the other, and of one that is not known in a slow iteration nothing is either.
    expect([[2, 5], [99]].map(isFine)).toEqual([false, false]);
    one.times.links.find(({ from }) => from === 10)!.ms[NORMAL] = NaN;
    expect(look(one).isFine([10, 14])).toBe(false);
  });

  it("does not count what is not known", () => {
    const one = play(seeded(2), 6, { factor: nic(2, 6) }, [true, true, true]);
    for (const { ms } of one.times.links) ms.fill(NaN, NORMAL + 1);
    expect(found(one)).toBeNull();
    const before = play(seeded(2), 6, { factor: nic(2, 6) }, [true, true, true]);
    for (const { ms } of before.times.links) ms.fill(NaN, 0, NORMAL - 2);
    expect(found(before)).toBeNull();
  });
});
