/** What becomes of the answer where records have gaps, lie about the time or contradict each other. */
import { describe, expect, test } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import { parseFault } from "../../simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../simulate/cluster/spec.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";
import { runSimulation } from "../../simulate/run.ts";
import { seeded } from "../../base/random.ts";
import type { FlightDump, OperatorTable } from "../../model/operators.ts";
import type { Reading } from "../../model/reading.ts";
import { ask } from "../../pipeline/diagnose.ts";
import { fuse } from "../../verdict/fuse.ts";
import { quietEnv, readFiles } from "../../../test/support/in-memory.ts";
import { withIterations } from "../methods.ts";

const CULPRIT = 21;

function readings(fault = `gpu-slow:rank=${CULPRIT}:from=9:severity=2.5`): Reading[] {
  const output = memoryOutput();
  const shape = { gpus: 32, tp: 2, pp: 4, iterations: 20, layersPerStage: 2, microBatches: 4 };
  runSimulation(
    completeSpec({ ...shape, faults: [parseFault(fault)] }),
    ["flight-recorder"],
    output,
  );
  return readFiles([...output.bytes].map(([name, bytes]) => ({ name, bytes })));
}

async function verdictOf(given: readonly Reading[]) {
  const job = withIterations(buildJob(given, null));
  const { findings, didNotRun } = await ask(job, quietEnv);
  return fuse(job, findings, didNotRun);
}

function changed(
  given: readonly Reading[],
  change: (dump: FlightDump, rank: number) => FlightDump,
): Reading[] {
  return given.map((reading) => ({
    ...reading,
    dumps: reading.dumps!.map((dump) => change(dump, reading.rank!)),
  }));
}

const whole = readings();
const complete = await verdictOf(whole);
const blamed = (verdict: Awaited<ReturnType<typeof verdictOf>>): number[] =>
  verdict.suspects.flatMap(({ ranks }) => ranks);

describe("a slow rank of 32", () => {
  test("is named without reservation where all is there", () => {
    expect(blamed(complete)).toEqual([CULPRIT]);
    expect(complete.missing).toEqual([]);
  });

  test("is named though clocks are off by seconds, and the time is right", async () => {
    const verdict = await verdictOf(
      changed(whole, (dump, rank) =>
        rank % 5 === 1 ? { ...dump, epochNs: dump.epochNs + 7_000_000_000n } : dump,
      ),
    );
    expect(blamed(verdict)).toEqual([CULPRIT]);
    expect(verdict.suspects[0]!.cause).toBe("gpu-slow");
    const apart = Date.parse(verdict.when.from!) - Date.parse(complete.when.from!);
    expect(Math.abs(apart)).toBeLessThan(1000);
  });

  test("is named where other ranks are missing, which is said", async () => {
    const verdict = await verdictOf(whole.filter(({ rank }) => ![3, 12, 30].includes(rank!)));
    expect(blamed(verdict)).toEqual([CULPRIT]);
    expect(verdict.missing.join()).toContain("ranks 3, 12, 30 left no flight-recorder dump");
  });

  test("is not replaced by somebody innocent, said with confidence, if its own dump is missing", async () => {
    const verdict = await verdictOf(whole.filter(({ rank }) => rank !== CULPRIT));
    const innocent = blamed(verdict).filter((rank) => rank !== CULPRIT);
    expect(innocent.length > 0 && verdict.confidence >= 0.8).toBe(false);
    expect(verdict.missing.join()).toContain(`rank ${CULPRIT} left no`);
  });

  test("is named though a share of the operators was lost", async () => {
    const random = seeded(5);
    const verdict = await verdictOf(
      changed(whole, (dump) => ({ ...dump, ops: kept(dump.ops, () => random() >= 0.002) })),
    );
    expect(blamed(verdict)).toEqual([CULPRIT]);
  });

  test("is named though a member of a group counts its operators differently", async () => {
    const verdict = await verdictOf(
      changed(whole, (dump, rank) =>
        rank === 2
          ? { ...dump, ops: { ...dump.ops, seq: dump.ops.seq.map((n) => n + 1000) } }
          : dump,
      ),
    );
    expect(blamed(verdict)).toEqual([CULPRIT]);
  });

  test("is not made up where no operator has a duration", async () => {
    const verdict = await verdictOf(
      changed(whole, (dump) => ({
        ...dump,
        ops: { ...dump.ops, durationMs: dump.ops.durationMs.map(() => NaN) },
      })),
    );
    expect(verdict.suspects).toEqual([]);
  });
});

/** The table without the records for which `keep` is false. */
function kept(ops: OperatorTable, keep: () => boolean): OperatorTable {
  const rows = Array.from({ length: ops.count }, (_, i) => i).filter(keep);
  const columns = Object.fromEntries(
    Object.entries(ops).map(([name, column]) => [
      name,
      ArrayBuffer.isView(column)
        ? (column as Float64Array).constructor === Float64Array
          ? Float64Array.from(rows, (i) => (column as Float64Array)[i]!)
          : (column as Int32Array).filter((_, i) => rows.includes(i))
        : column,
    ]),
  );
  return { ...ops, ...columns, count: rows.length };
}
