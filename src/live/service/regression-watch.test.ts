import { expect, it } from "vitest";
import type { Incident } from "../../model/incident.ts";
import { INTERVAL_MS, simulatedWork } from "../../../test/support/live/simulated-work.ts";
import { JobRun } from "./job-run.ts";
import { RegressionWatch, savedRegressions, type SavedRegressions } from "./regression-watch.ts";

const MINUTE = 60_000;
const START_MS = 1_795_000_000_000;

function runOf(name: string): JobRun {
  const report = { kind: "job", job: "llm", run: name, startedMs: START_MS } as const;
  const run = new JobRun({ ...report, worldSize: 16, ranks: [] }, null);
  const connected = { has: () => true };
  for (let m = 0; m < 4; m++) {
    const ranks = [0, 1, 2, 3].map((k) => ({
      rank: 4 * m + k,
      gpu: k,
      pid: 1,
      nic: null,
      leaf: null,
      stage: null,
      groups: [],
    }));
    run.take(`m${m}`, `m${m}`, { ...report, worldSize: 16, ranks }, connected);
  }
  return run;
}

/** Plays a job for some minutes. */
async function play(
  saved: SavedRegressions,
  run: JobRun,
  work: ReturnType<typeof simulatedWork>,
  fromMs: number,
  toMs: number,
): Promise<{ incidents: Incident[]; watch: RegressionWatch }> {
  const incidents: Incident[] = [];
  const watch = new RegressionWatch(
    {
      save: async (incident) => void incidents.push(incident),
      trouble: (error) => {
        throw error;
      },
    },
    saved,
  );
  for (let atMs = fromMs; atMs < toMs; atMs += INTERVAL_MS) {
    const nowMs = START_MS + atMs + INTERVAL_MS;
    for (const [agent, summary] of work(atMs)) watch.take(agent, run, summary, nowMs);
    watch.tick(run, nowMs);
    await watch.idle();
  }
  return { incidents, watch };
}

const NOTHING: SavedRegressions = { open: null, baseline: null };
const CASES = [
  ["dataloader", "dataloader", "algorithm", /loading data takes up to .* ms of each instead of/],
  ["garbage-collection", "garbage-collection", "algorithm", /garbage collections take up to/],
  ["synchronization", "synchronization", "algorithm", /waiting for the GPU, more often/],
  ["products", "slow-kernel", "infrastructure", /the same matrix products take up to/],
] as const;

it.each(CASES)(
  "a regression of %s is an incident with its owner",
  async (part, cause, owner, says) => {
    const regression = { part, cost: 0.15, fromMs: 20 * MINUTE, toMs: 30 * MINUTE };
    const work = simulatedWork({ seed: 21, regression });
    const { incidents, watch } = await play(NOTHING, runOf("r1"), work, 0, 40 * MINUTE);
    expect(incidents.map(({ kind, state }) => `${kind} ${state}`)).toEqual([
      "regression suspected",
      "regression confirmed",
      "regression resolved",
    ]);
    const [, confirmed] = incidents as [Incident, Incident];
    expect(confirmed.verdict).toMatchObject({ kind: "regression", owner });
    expect(confirmed.verdict!.suspects[0]!.cause).toBe(cause);
    expect(confirmed.verdict!.suspects[0]!.why).toMatch(says);
    expect(confirmed.changedMs - START_MS - regression.fromMs).toBeLessThanOrEqual(3 * MINUTE);
    expect(confirmed).toMatchObject({ ranks: [], machines: [] });
    expect(watch.open).toBeNull();
  },
);

it("goes over to the next service, and ends with the run", async () => {
  const regression = { part: "dataloader", cost: 0.2, fromMs: 20 * MINUTE } as const;
  const work = simulatedWork({ seed: 5, regression });
  const run = runOf("r1");
  const first = await play(NOTHING, run, work, 0, 25 * MINUTE);
  expect(first.watch.open).toMatchObject({ state: "confirmed" });
  const document: unknown = JSON.parse(JSON.stringify({ regressions: first.watch.state }));
  const second = await play(savedRegressions(document), run, work, 25 * MINUTE, 35 * MINUTE);
  expect(second.incidents).toEqual([]);
  expect(second.watch.open?.id).toBe(first.watch.open!.id);
  const healthy = simulatedWork({ seed: 6 });
  const again = savedRegressions(JSON.parse(JSON.stringify({ regressions: second.watch.state })));
  const { incidents } = await play(again, runOf("r2"), healthy, 40 * MINUTE, 45 * MINUTE);
  expect(incidents.map(({ state, summary }) => `${state}: ${summary}`)).toEqual([
    "resolved: over: the job was started again",
  ]);
});

it("documents of older services tell nothing", () => {
  for (const odd of [null, {}, { regressions: 3 }, { regressions: { open: 1, baseline: [] } }])
    expect(savedRegressions(odd)).toEqual(NOTHING);
});
