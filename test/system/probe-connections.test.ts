/** Hangs inside a collective, made by proxies that obey NCCL's rules: the method must name where each begins. */
import { describe, expect, it } from "vitest";
import { pick, randomInt, seeded, type Random } from "../../src/base/random.ts";
import { sample } from "../support/sample.ts";
import { buildJob } from "../../src/ingest/build-job.ts";
import { KIND } from "../../src/ingest/probe-ring/layout.ts";
import { readRing } from "../../src/ingest/probe-ring/read-ring.ts";
import { RingWriter } from "../support/ingest/ring-writer.ts";
import { connections } from "../../src/methods/hang/connections.ts";
import { processState } from "../../src/methods/hang/process-state.ts";
import {
  BUFFERS,
  isAbsent,
  receiveEnd,
  runProxies,
  sendEnd,
  type ProxyFault,
  type Shape,
  type SimLine,
} from "../support/methods/proxies.ts";
import type { NewFinding } from "../../src/model/finding.ts";
import type { Env, Job } from "../../src/model/job.ts";

const SECOND = 1e9;
const ENV: Env = { signal: new AbortController().signal, progress: () => undefined };

interface Case {
  readonly shape: Shape;
  readonly size: number;
  readonly steps: number;
  readonly fault: ProxyFault;
  /** Member of the communicator → rank of the job. */
  readonly ranks: readonly number[];
  readonly perMachine: number;
  /** Whether whoever copied the rings looked at the processes. */
  readonly isLookedAt: boolean;
  readonly lines: readonly SimLine[];
}

const machineOf = ({ perMachine }: Pick<Case, "perMachine">, member: number): number =>
  Math.floor(member / perMachine);

function draw(seed: number, kinds: readonly ProxyFault["kind"][], perMachine = 1): Case {
  const random = seeded(seed);
  const machines = 3 + randomInt(random, 10);
  const shape = pick<Shape>(random, ["ring", "ring", "tree", "second-tree"]);
  const size = shape === "ring" ? machines * perMachine : machines;
  const spread = shape === "ring" ? perMachine : 1;
  const steps = 4 + randomInt(random, 40);
  const fault = drawFault(random, pick(random, kinds), shape, size, steps, spread);
  const lines = runProxies(shape, size, steps, fault, random);
  const ranks = sample(random, 3 * size, size);
  return {
    shape,
    size,
    steps,
    fault,
    ranks,
    perMachine: spread,
    isLookedAt: seed % 2 === 0,
    lines,
  };
}

function drawFault(
  random: Random,
  kind: ProxyFault["kind"],
  shape: Shape,
  size: number,
  steps: number,
  perMachine: number,
): ProxyFault {
  const rank = randomInt(random, size);
  const step = randomInt(random, steps);
  if (kind === "gpu") return { kind, rank, step };
  if (kind === "stopped") return { kind, rank, after: 1 + randomInt(random, size * steps) };
  if (kind === "absent") return { kind, rank };
  // Any line between two machines, found by running the same shape without a fault.
  const lines = runProxies(shape, size, 1, { kind: "gpu", rank: -1, step: 0 }, seeded(1));
  const between = lines.filter(
    ({ from, to }) => machineOf({ perMachine }, from) !== machineOf({ perMachine }, to),
  );
  const { from, to } = pick(random, between);
  return { kind, from, to, step };
}

function jobOf(one: Case): Job {
  const { lines, size, steps, fault, ranks } = one;
  // Steps of operators before this one.
  const base = 1000;
  const rings = ranks.map((rank, member) => {
    const machine = machineOf(one, member);
    const ring = new RingWriter({
      rank,
      worldSize: 3 * size,
      host: `h${machine}`,
      pid: 10 + member,
      records: 4,
      connections: 16,
    });
    const comm = ring.comm(0x77n, member, size, "", 8);
    const isHere = !isAbsent(member, fault);
    const op = { kind: KIND.collective, func: 1, group: comm, a: 1 << 20 };
    const times = { issuedNs: SECOND, startedNs: SECOND };
    ring.record({ ...op, b: 7, issuedNs: 1, startedNs: 2, endedNs: 3 });
    if (isHere) ring.record({ ...op, b: 8, ...times });
    for (const line of lines) {
      const isSend = line.from === member;
      if (!isSend && line.to !== member) continue;
      if (machineOf(one, line.from) === machineOf(one, line.to)) continue;
      const end = isSend ? sendEnd(line, steps, fault) : receiveEnd(line, steps);
      const begun = isHere ? Math.min(steps, end.finished + BUFFERS) : 0;
      ring.connection({
        comm,
        isSend,
        peer: isSend ? line.to : line.from,
        begun: base + begun,
        finished: base + (isHere ? end.finished : 0),
        states: isHere && end.state > 0 ? [end.state] : [],
        changedNs: 2 * SECOND,
      });
    }
    const isStopped = fault.kind === "stopped" && fault.rank === member;
    ring.heartbeat((isStopped ? 2 : 60) * SECOND);
    ring.copied(60 * SECOND, one.isLookedAt ? (isStopped ? "T" : "S") : "");
    return readRing(`job.r${rank}.${10 + member}.native.ring`, ring.bytes);
  });
  return buildJob(rings, null);
}

function found(job: Job, method = connections): NewFinding[] {
  return [...(method.run(job, ENV) as Iterable<NewFinding>)];
}

const isOver = ({ lines, steps }: Case): boolean => lines.every(({ emptied }) => emptied >= steps);
const words = (one: Case): string => JSON.stringify({ ...one, lines: undefined });

describe("hangs inside a collective", () => {
  const seeds = Array.from({ length: 160 }, (_, seed) => seed);

  it("names the wire that carries nothing, whatever waits for it", () => {
    let asked = 0;
    for (const seed of seeds) {
      const one = draw(seed, ["wire", "lost", "credit"]);
      if (isOver(one)) continue;
      asked++;
      const { fault, ranks } = one;
      if (!("from" in fault)) throw new Error("no line");
      const ends = [ranks[fault.from]!, ranks[fault.to]!].sort((a, b) => a - b);
      const findings = found(jobOf(one));
      const accused = findings.flatMap(({ accuses }) => accuses);
      expect(
        accused.map(({ ranks: r, type, cause }) => ({ r, type, cause })),
        words(one),
      ).toEqual([{ r: ends, type: "link", cause: "network-hang" }]);
      expect(accused[0]!.link).toEqual([`rank:${ends[0]}`, `rank:${ends[1]}`]);
      expect(findings[0]!.clears).toHaveLength(one.size - 2);
    }
    expect(asked).toBeGreaterThan(120);
  });

  it("names the GPU that has its data and does not go on", () => {
    let asked = 0;
    for (const seed of seeds) {
      const one = draw(seed, ["gpu"]);
      if (isOver(one)) continue;
      asked++;
      const { fault, ranks } = one;
      if (fault.kind !== "gpu") throw new Error("no GPU");
      const accused = found(jobOf(one)).flatMap(({ accuses }) => accuses);
      expect(
        accused.map(({ ranks: r, cause }) => ({ r, cause })),
        words(one),
      ).toEqual([{ r: [ranks[fault.rank]], cause: "gpu-hang" }]);
    }
    expect(asked).toBeGreaterThan(120);
  });

  it("names the machine where its GPUs pass data on unseen, and the wire between two machines", () => {
    let asked = 0;
    for (const seed of seeds) {
      const one = draw(seed, ["gpu", "wire"], 4);
      // The last steps may wait between two GPUs of the machine, where no proxy sees them.
      const isSeen = one.lines.some(
        ({ from, to, emptied }) =>
          machineOf(one, from) !== machineOf(one, to) && emptied < one.steps,
      );
      if (isOver(one) || one.shape !== "ring" || !isSeen) continue;
      asked++;
      const { fault, ranks } = one;
      const accused = found(jobOf(one)).flatMap(({ accuses }) => accuses);
      expect(accused, words(one)).toHaveLength(1);
      if ("from" in fault) {
        const ends = [ranks[fault.from]!, ranks[fault.to]!];
        expect(new Set(accused[0]!.ranks), words(one)).toEqual(new Set(ends));
      } else if (fault.kind === "gpu") {
        const machine = machineOf(one, fault.rank);
        const hosts = accused[0]!.ranks.map((rank) => machineOf(one, ranks.indexOf(rank)));
        expect(new Set(hosts), words(one)).toEqual(new Set([machine]));
      }
    }
    expect(asked).toBeGreaterThan(50);
  });

  it("names a process that is stopped, and nobody else, where somebody looked", () => {
    let asked = 0;
    for (const seed of seeds) {
      const one = { ...draw(seed, ["stopped"]), isLookedAt: true };
      if (isOver(one) || one.fault.kind !== "stopped") continue;
      asked++;
      const job = jobOf(one);
      const rank = one.ranks[one.fault.rank]!;
      expect(
        found(job).flatMap(({ accuses }) => accuses),
        words(one),
      ).toEqual([]);
      const accused = found(job, processState).flatMap(({ accuses }) => accuses);
      expect(accused.map(({ ranks, cause }) => [ranks, cause])).toEqual([
        [[rank], "process-stopped"],
      ]);
    }
    expect(asked).toBeGreaterThan(80);
  });

  it("accuses nobody who does not touch a stopped process, where nobody looked", () => {
    for (const seed of seeds) {
      const one = { ...draw(seed, ["stopped"]), isLookedAt: false };
      if (isOver(one) || one.fault.kind !== "stopped") continue;
      const rank = one.ranks[one.fault.rank]!;
      for (const { ranks } of found(jobOf(one)).flatMap(({ accuses }) => accuses))
        expect(ranks, words(one)).toContain(rank);
    }
  });

  it("accuses nobody who waits for a rank that has not come", () => {
    for (const seed of seeds) {
      const one = draw(seed, ["absent"]);
      const findings = found(jobOf(one));
      expect(
        findings.flatMap(({ accuses }) => accuses),
        words(one),
      ).toEqual([]);
    }
  });
});
