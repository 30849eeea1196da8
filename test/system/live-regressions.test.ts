/** Code that becomes slower in a running job: through rings, the agents' own code, the wire's frames and the service. */
import { expect, it } from "vitest";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { rehearseRings } from "../support/live/ring-rehearsal.ts";
import { few, longTest } from "../support/cases.ts";

const EVERY_MS = 1500;
const JOB = { gpus: 8, gpusPerMachine: 2, tp: 2, pp: 2, sequence: 32_768 };
/** After four minutes. */
const LATER = Math.ceil(240_000 / EVERY_MS);

function specOf(seed: number, fault: string): Partial<ClusterSpec> {
  return { ...JOB, seed, faults: [parseFault(fault)] };
}

const FAULTS = [
  ["synchronization:how=layer", "synchronization", "algorithm"],
  ["slow-kernel", "slow-kernel", "infrastructure"],
] as const;

it.each(few(FAULTS, 1))(
  "%s is one incident, with its owner, within three minutes",
  async (fault, cause, owner) => {
    const rehearsal = await rehearseRings({
      spec: specOf(31, `${fault}:cost=0.12:from=${LATER}`),
      everyMs: EVERY_MS,
    });
    await rehearsal.run(240 + 180);
    const ids = new Set(rehearsal.told.map(({ id }) => id));
    expect(ids.size).toBe(1);
    const last = rehearsal.told.at(-1)!;
    expect(last).toMatchObject({ state: "confirmed", kind: "regression", ranks: [], machines: [] });
    expect(last.verdict).toMatchObject({ owner, suspects: [{ cause }] });
    await rehearsal.close();
  },
  300_000,
);

it("a network that is slower than in earlier jobs that did the same is named, with its owner", async () => {
  const job = { gpus: 8, gpusPerMachine: 2, tp: 2, pp: 1, sequence: 8192 };
  const healthy = await rehearseRings({ spec: { ...job, seed: 33 }, everyMs: EVERY_MS });
  await healthy.run(300);
  const { history } = healthy;
  const startMs = healthy.nowMs() + 60_000;
  await healthy.close();
  const faults = [parseFault("network-slow:switch=leaf0:severity=2")];
  const again = await rehearseRings({
    spec: { ...job, seed: 34, faults },
    everyMs: EVERY_MS,
    job: "another-name",
    history,
    startMs,
  });
  await again.run(240);
  const last = again.told.at(-1)!;
  expect(last).toMatchObject({ state: "confirmed", kind: "regression" });
  expect(last.verdict).toMatchObject({
    owner: "operations",
    suspects: [{ cause: "network-slow", ranks: [0, 1, 2, 3, 4, 5, 6, 7] }],
  });
  await again.close();
}, 300_000);

longTest(
  "a job that is slow from its first step on is compared with earlier ones that did the same",
  async () => {
    const healthy = await rehearseRings({ spec: { ...JOB, seed: 33 }, everyMs: EVERY_MS });
    await healthy.run(300);
    expect(healthy.told).toEqual([]);
    const { history } = healthy;
    const startMs = healthy.nowMs() + 60_000;
    await healthy.close();
    const again = await rehearseRings({
      // As the same job would take without the fault.
      spec: specOf(34, "garbage-collection:how=now-and-then:cost=0.1"),
      everyMs: EVERY_MS,
      job: "another-name",
      history,
      startMs,
    });
    await again.run(240);
    expect(
      again.told.map(({ kind, verdict }) => [kind, verdict?.suspects[0]?.cause]).at(-1),
    ).toEqual(["regression", "garbage-collection"]);
    await again.close();
  },
  300_000,
);
