/** Ranks that change places: what is wrong with a GPU, a NIC or a link stays where it is. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UserError } from "../../base/errors.ts";
import { simulate } from "./engine.ts";
import { parseFault } from "./fault-spec.ts";
import { completeSpec, type ClusterSpec } from "./spec.ts";
import { jobs, run, type Run } from "../../../test/support/simulate/jobs.ts";
import { makeTopology } from "./topology.ts";
import { runs } from "../../../test/support/cases.ts";

const took = (job: Run): number[] => job.kept.map(({ startNs, endNs }) => endNs - startNs);

/** Seats by rank where two machines have changed places. */
function swapped(spec: ClusterSpec, a: number, b: number): Int32Array {
  const size = spec.gpusPerMachine;
  return Int32Array.from({ length: spec.gpus }, (_, rank) => {
    const machine = Math.floor(rank / size);
    const other = machine === a ? b : machine === b ? a : machine;
    return other * size + (rank % size);
  });
}

describe("seats", () => {
  /** Faults in words, by a function that names a GPU and one that names a machine. */
  type Words = (gpu: (n: number) => number, machine: (n: number) => string) => string;
  const words: readonly Words[] = [
    (gpu) => `gpu-slow:rank=${gpu(0)}:severity=3`,
    (gpu) => `cpu-stall:rank=${gpu(0)}:severity=60`,
    (gpu) => `dataloader:rank=${gpu(0)}:severity=4`,
    (gpu) => `garbage-collection:rank=${gpu(0)}:severity=5`,
    (gpu) => `network-slow:rank=${gpu(0)}:severity=6`,
    (gpu) => `gpu-slow:rank=${gpu(0)}:signature=nvlink`,
    (gpu) => `minority-kernels:rank=${gpu(0)}:how=pe`,
    (gpu) => `synchronization:rank=${gpu(0)}:how=layer`,
    (gpu) => `network-slow:link=${gpu(0)}-${gpu(1)}:severity=4`,
    (_, machine) => `cpu-stall:machine=${machine(0)}:severity=60`,
    (_, machine) => `network-slow:machine=${machine(0)}:severity=6`,
    (_, machine) => `network-slow:link=${machine(0)}-${machine(1)}:severity=4`,
    () => "dataloader",
    () => "synchronization",
  ];

  /** A run, or null where its fault is refused because it touches nothing. */
  const tried = (attempt: () => Run): Run | null => {
    try {
      return attempt();
    } catch (error) {
      if (error instanceof UserError) return null;
      throw error;
    }
  };

  test("move a fault as if it had been elsewhere from the start", () => {
    const cases = fc.record({
      spec: jobs,
      choice: fc.nat(words.length - 1),
      place: fc.nat(1000),
      order: fc.array(fc.nat(1000), { minLength: 130, maxLength: 130 }),
    });
    let compared = 0;
    fc.assert(
      fc.property(cases, ({ spec: drawn, choice, place, order }) => {
        // All machines alike, with one leaf a rail, so that only the fault tells one from another.
        const spec = { ...drawn, noise: 0, machinesPerLeaf: 32 };
        const size = spec.gpusPerMachine;
        if (spec.gpus % size !== 0) return;
        const machines = spec.gpus / size;
        const machineAt = Array.from({ length: machines }, (_, m) => m).sort(
          (a, b) => order[a]! - order[b]!,
        );
        // Machines change places, and the GPUs of each among themselves.
        const seats = Int32Array.from({ length: spec.gpus }, (_, rank) => {
          const machine = machineAt[Math.floor(rank / size)]!;
          return machine * size + (((rank % size) + order[machine]!) % size);
        });
        const topology = makeTopology(spec);
        const gpu = (n: number): number => (place + 7 * n * n + n) % spec.gpus;
        const machine = (n: number): number => (place + n) % machines;
        const there = parseFault(words[choice]!(gpu, (n) => topology.machineName(machine(n))));
        const here = parseFault(
          words[choice]!(
            (n) => seats.indexOf(gpu(n)),
            (n) => topology.machineName(machineAt.indexOf(machine(n))),
          ),
        );
        const moved = tried(() => run({ ...spec, faults: [there] }, {}, () => ({ seats })));
        if (moved === null) return;
        const expected = tried(() => run({ ...spec, faults: [here] })) ?? run(spec);
        expect(moved.kept).toEqual(expected.kept);
        compared++;
      }),
      { seed: 5, numRuns: runs(30, 150) },
    );
    expect(compared).toBeGreaterThan(runs(12, 60));
  });

  test("a slow GPU slows the rank that sits on it", () => {
    const faults = [parseFault("gpu-slow:rank=3:severity=3")];
    const spec = completeSpec({ gpus: 32, tp: 2, pp: 4, faults, iterations: 2 });
    const slow: number[][] = [];
    for (const { devices } of simulate(spec).iterations((iteration) =>
      iteration === 2 ? { seats: swapped(spec, 0, 2) } : null,
    ))
      slow.push([...devices.gpu].flatMap((factor, rank) => (factor === 3 ? [rank] : [])));
    expect(slow).toEqual([[3], [19]]);
  });

  test("groups that are torn apart go over the network", () => {
    const spec = completeSpec({ gpus: 16, tp: 8, pp: 2, noise: 0, iterations: 2 });
    const seats = Int32Array.from({ length: 16 }, (_, rank) =>
      rank % 2 === 0 ? rank : (rank + 8) % 16,
    );
    const [apart, again] = took(
      run(spec, {}, (iteration) =>
        iteration === 1 ? { seats } : { seats: Int32Array.from(seats.keys()) },
      ),
    );
    const [, usual] = took(run(spec));
    expect(apart! / again!).toBeGreaterThan(1.5);
    expect(again).toBeCloseTo(usual!, 1);
  });

  test("exchanged and exchanged back give the same times, with noise and unlike machines", () => {
    const faults = [parseFault("network-slow:link=node000-node001:severity=5")];
    const spec = completeSpec({ gpus: 32, tp: 2, pp: 2, placement: 1, iterations: 6, faults });
    const usual = took(run(spec));
    const steered = took(
      run(spec, {}, (iteration) => {
        if (iteration === 3) return { seats: swapped(spec, 0, 3) };
        return iteration === 5 ? { seats: Int32Array.from({ length: 32 }, (_, i) => i) } : null;
      }),
    );
    for (const i of [0, 1, 4, 5]) expect(steered[i]).toBeCloseTo(usual[i]!, 1);
    for (const i of [2, 3]) expect(Math.abs(steered[i]! / usual[i]! - 1)).toBeGreaterThan(1e-4);
  });

  test("are a permutation", () => {
    const spec = completeSpec({ gpus: 4, tp: 1, pp: 1, iterations: 1 });
    const says = (...seats: number[]) =>
      run.bind(null, spec, {}, () => ({ seats: Int32Array.from(seats) }));
    expect(says(3, 2, 1, 0)).not.toThrow();
    expect(says(0, 1, 2)).toThrow(/3 seats for 4 ranks/);
    expect(says(0, 1, 2, 2)).toThrow(/seat 2 is taken twice/);
    expect(says(0, 1, 2, 4)).toThrow(/seat 4 is not there/);
  });
});

describe("congestion between two machines", () => {
  // Four machines; tp fills half of one, so that gradients go between machines 0, 1 and 2, 3, activations between
  // 0, 2 and 1, 3.
  const given = { gpus: 32, tp: 4, pp: 2, dp: 4, noise: 0, iterations: 1 } as const;
  const healthy = took(run(completeSpec(given)))[0]!;
  const fault = (link: string) => [parseFault(`network-slow:link=${link}:severity=8`)];

  test("slows gradients where replicas meet, and activations where stages do", () => {
    const serial = { ...given, overlapGradients: false };
    const usual = took(run(completeSpec(serial)))[0]!;
    for (const link of ["node000-node001", "node003-node002", "node000-node002"]) {
      const slow = took(run(completeSpec({ ...serial, faults: fault(link) })))[0]!;
      expect(slow / usual).toBeGreaterThan(1.1);
    }
  });

  test("costs nothing once the two share no group", () => {
    const spec = completeSpec({ ...given, faults: fault("node000-node001") });
    expect(took(run(spec))[0]! / healthy).toBeGreaterThan(1.05);
    // Machine 1 takes the place of 3: then 0 and 1 are at opposite corners.
    expect(took(run(spec, {}, () => ({ seats: swapped(spec, 1, 3) })))[0]).toBe(healthy);
  });

  test("can stop the job", () => {
    const faults = [parseFault("network-hang:link=node000-node001")];
    expect(run(completeSpec({ ...given, faults })).kept[0]!.endNs).toBe(Infinity);
  });
});
