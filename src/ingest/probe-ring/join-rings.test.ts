import { describe, expect, it } from "vitest";
import type { Job } from "../../model/job.ts";
import type { Reading } from "../../model/reading.ts";
import { buildJob } from "../build-job.ts";
import { readRing } from "./read-ring.ts";
import { KIND } from "./layout.ts";
import { RingWriter, type RingAbout } from "../../../test/support/ingest/ring-writer.ts";

const SECOND = 1e9;

interface Made extends RingAbout {
  readonly file?: string;
  /** [id, place, size] */
  readonly comms?: readonly (readonly [bigint, number, number])[];
  readonly heartbeatNs?: number;
}

function ring({ comms = [], file, heartbeatNs = SECOND, ...about }: Made): Reading {
  const made = new RingWriter({ records: 16, worldSize: 8, ...about });
  for (const [id, place, size] of comms) {
    const group = made.comm(id, place, size);
    made.record({ kind: KIND.collective, func: 1, group, b: 1, issuedNs: 5, endedNs: 9 });
  }
  made.heartbeat(heartbeatNs);
  return readRing(file ?? `job.r${about.rank ?? "x"}.${about.pid ?? 1}.native.ring`, made.bytes);
}

function membersOf(job: Job, id: bigint): readonly number[] | undefined {
  return job.groups.find(({ name }) => name === id.toString(16).padStart(16, "0"))?.ranks;
}

/** Eight ranks in tensor groups of two neighbours, data groups of every second, and one of all. */
const LAYOUT = Array.from({ length: 8 }, (_, rank) => ({
  rank,
  pid: 100 + rank,
  host: `h${rank >> 1}`,
  gpu: rank % 2,
  comms: [
    [1n, rank, 8],
    [BigInt(10 + (rank >> 1)), rank & 1, 2],
    [BigInt(20 + (rank & 1)), rank >> 1, 4],
  ] as const,
}));

describe("a job of rings", () => {
  it("knows its groups, machines and processes by what each ring says of itself", () => {
    const job = buildJob(LAYOUT.map(ring), null);
    expect(job.missing).toEqual([]);
    expect(job.worldSize).toBe(8);
    expect(membersOf(job, 1n)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(membersOf(job, 11n)).toEqual([2, 3]);
    expect(membersOf(job, 21n)).toEqual([1, 3, 5, 7]);
    expect(job.ranks.get(5)).toMatchObject({ machine: "h2", gpu: 1, pid: 105 });
    expect(job.processes.get("h2:105")).toBe(5);
    const roles = new Set(job.groups.map(({ role }) => role));
    expect(roles).toEqual(new Set(["group of 8", "group of 2", "group of 4, 2 apart"]));
  });

  it("fills in a rank without a ring where only one fits", () => {
    const job = buildJob(LAYOUT.filter(({ rank }) => rank !== 4).map(ring), null);
    expect(membersOf(job, 1n)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(membersOf(job, 12n)).toEqual([4, 5]);
    expect(membersOf(job, 20n)).toEqual([0, 2, 4, 6]);
    expect(job.missing).toEqual(["rank 4 left no ring"]);
  });

  it("fills in by even steps where several are absent, and nothing where that does not decide", () => {
    const job = buildJob(LAYOUT.filter(({ rank }) => ![3, 4, 5].includes(rank)).map(ring), null);
    expect(membersOf(job, 20n)).toEqual([0, 2, 4, 6]);
    expect(membersOf(job, 21n)).toEqual([1, 3, 5, 7]);
    // Rank 2's partner may be any of the three.
    expect(membersOf(job, 11n)).toEqual([2]);
  });

  it("keeps a group with the members it knows where others cannot be told, and says so", () => {
    const odd = [
      { rank: 0, comms: [[7n, 0, 3]] as const },
      { rank: 5, comms: [[7n, 1, 3]] as const },
    ];
    const job = buildJob(odd.map(ring), null);
    expect(membersOf(job, 7n)).toEqual([0, 5]);
    expect(job.groups[0]!.unknownMembers).toBe(1);
    expect(job.missing[0]).toMatch(/members of 1 communicator left no ring.*1 of 3/);
  });

  it("finds the rank of a process that did not know it", () => {
    const nameless = LAYOUT.map(({ pid, host, gpu, comms }) => ({ pid, host, gpu, comms }));
    const job = buildJob(nameless.map(ring), null);
    expect([...job.dumps.keys()]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(job.processes.get("h3:107")).toBe(7);
    expect(job.probes!.map(({ rank }) => rank)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it("uses the newest of two jobs, and says so", () => {
    const later = 1_767_225_600_000_000_000n + 3_600_000_000_000n;
    const old = LAYOUT.map((one) => ring({ ...one, job: "a n:1", file: `a.${one.rank}.ring` }));
    const others = LAYOUT.slice(0, 4).map((one) =>
      ring({ ...one, job: "b n:2", madeAtNs: later, worldSize: 4, file: `b.${one.rank}.ring` }),
    );
    const job = buildJob([...old, ...others], null);
    expect(job.probes!.map(({ file }) => file)).toEqual(others.map(({ file }) => file));
    expect(job.missing[0]).toMatch(/the folder holds rings of 2 jobs: the newest, "b n:2"/);
    expect(job.inputs).toHaveLength(12);
  });

  it("puts a ring that knew no meeting place to the others of its job", () => {
    const mixed = LAYOUT.map((one) => ring({ ...one, job: one.rank === 3 ? "job" : "job n:1" }));
    expect(buildJob(mixed, null).probes).toHaveLength(8);
  });

  it("leaves out what ended before the job was started again", () => {
    const later = 1_767_225_600_000_000_000n + 600_000_000_000n;
    const first = LAYOUT.map((one) => ring({ ...one, file: `first.${one.rank}.ring` }));
    const second = LAYOUT.filter(({ rank }) => rank !== 6).map((one) =>
      ring({ ...one, pid: 900 + one.rank, madeAtNs: later, file: `second.${one.rank}.ring` }),
    );
    const job = buildJob([...first, ...second], null);
    expect(job.dumps.has(6)).toBe(false);
    expect([...job.dumps.values()].every(({ dump }) => dump.file.startsWith("second"))).toBe(true);
    expect(job.missing.join("\n")).toMatch(
      /the rings of rank 6 ended before the job was started again/,
    );
  });

  it("does not take a program that a rank started for the rank", () => {
    const living = LAYOUT.map((about) => ring({ ...about, heartbeatNs: 100 * SECOND }));
    const dead = ring({ ...LAYOUT[3]!, heartbeatNs: 20 * SECOND });
    const child = ring({
      rank: 0,
      pid: 999,
      host: "h0",
      madeAtNs: 1_767_225_600_000_000_000n + 50_000_000_000n,
      file: "job.r0.999.native.ring",
    });
    const job = buildJob([...living.filter((_, rank) => rank !== 3), dead, child], null);
    expect(job.dumps.get(0)!.dump.file).toBe("job.r0.100.native.ring");
    // It is no restart either: whoever died before it began is still of this run.
    expect(job.dumps.has(3)).toBe(true);
  });

  it("takes the later of two copies of one ring", () => {
    const [one, ...rest] = LAYOUT.map((about) => ring(about));
    const later = ring({
      ...LAYOUT[0]!,
      heartbeatNs: 90 * SECOND,
      file: "later.r0.100.native.ring",
    });
    const job = buildJob([one!, later, ...rest], null);
    expect(job.dumps.get(0)!.dump.file).toBe("later.r0.100.native.ring");
  });

  it("takes operators of one source: the rings', unless the flight recorder saw more or timed alone", () => {
    const rings = LAYOUT.map((about) => ring(about));
    const recorded = (ranks: number, timing: boolean): Reading[] =>
      rings.slice(0, ranks).map((reading, rank) => {
        const { takenNs: _, ...dump } = reading.dumps![0]!;
        const file = `fr_${rank}`;
        const groups = [{ ...dump.groups[0]!, name: "0", ranks: [0, 1, 2, 3, 4, 5, 6, 7] }];
        const none = { ...dump.ops, count: 0 };
        const { records, defects } = reading;
        const one = {
          ...dump,
          file,
          groups: groups.map(({ own: __, ...group }) => group),
          timing,
          ops: none,
        };
        return { file, format: "flight-recorder", rank, records, defects, dumps: [one] };
      });
    const sourceOf = (readings: readonly Reading[]): string =>
      buildJob(readings, null).dumps.get(0)!.dump.file;
    expect(sourceOf([...rings, ...recorded(8, false)])).toBe("job.r0.100.native.ring");
    expect(sourceOf([...rings, ...recorded(8, true)])).toBe("fr_0");
    expect(sourceOf([...rings, ...recorded(7, true)])).toBe("job.r0.100.native.ring");
    expect(sourceOf([...rings.slice(1), ...recorded(8, false)])).toBe("fr_0");
    const timed = LAYOUT.map((about) => {
      const made = new RingWriter({ records: 16, worldSize: 8, ...about });
      const group = made.comm(1n, about.rank, 8);
      const times = { issuedNs: 5, startedNs: 6, endedNs: 9 };
      made.record({ kind: KIND.collective, func: 1, group, b: 1, ...times });
      return readRing(`t.r${about.rank}.1.native.ring`, made.bytes);
    });
    expect(sourceOf([...timed, ...recorded(8, false)])).toBe("t.r0.1.native.ring");
    expect(sourceOf([...timed, ...recorded(8, true)])).toBe("t.r0.1.native.ring");
  });

  it("puts what Python did beside the kernels of its process", () => {
    const native = new RingWriter({ rank: 0, pid: 7, host: "h", records: 16 });
    const api = native.name("cublasGemmEx");
    const timed = { issuedNs: 100, startedNs: 200, endedNs: 300 };
    native.record({ kind: KIND.matrix, group: api, a: 64 + 64 * 2 ** 32, b: 64, ...timed });
    // Made a second later, on the same clock.
    const made = 1_767_225_601_000_000_000n;
    const python = new RingWriter({
      rank: 0,
      pid: 7,
      host: "h",
      writer: "python",
      madeAtNs: made,
      monotonicNs: 1_001_000_000_000n,
      records: 16,
    });
    const loader = python.name("torch.utils.data@DataLoader.__next__");
    python.record({ kind: KIND.iteration, a: 1, issuedNs: 10, endedNs: 50 });
    python.record({ kind: KIND.pythonCall, group: loader, issuedNs: 20, endedNs: 30 });
    const readings = [
      readRing("a.native.ring", native.bytes),
      readRing("a.python.ring", python.bytes),
    ];
    const [kernels] = buildJob(readings, null).kernels!;
    expect(kernels!.hostEvents.count).toBe(1);
    expect(kernels!.hostEvents.startNs[0]).toBe(SECOND + 20);
    expect(kernels!.names[kernels!.hostEvents.name[0]!]).toMatch(/DataLoader/);
    expect([...kernels!.steps.startNs]).toEqual([SECOND + 10]);
  });
});
