import { expect, it } from "vitest";
import { INTERVAL_MS, simulatedWork } from "../../../../test/support/live/simulated-work.ts";
import { JobRun } from "../job/job-run.ts";
import { RegressionWatch, windowsOf, type Baselines } from "./regression-watch.ts";

const MINUTE = 60_000;
const START_MS = 1_795_000_000_000;

function runOf(name: string): JobRun {
  const report = { kind: "job", job: name, run: name, startedMs: START_MS } as const;
  return new JobRun({ ...report, worldSize: 16, ranks: [] }, null);
}

class Documents implements Baselines {
  readonly all = new Map<string, unknown>();
  document = (key: string): Promise<unknown> => Promise.resolve(this.all.get(key) ?? null);
  documentKeys = (): Promise<readonly string[]> => Promise.resolve([...this.all.keys()]);
  putDocument(key: string, document: unknown): Promise<void> {
    if (document === null) this.all.delete(key);
    else this.all.set(key, JSON.parse(JSON.stringify(document)));
    return Promise.resolve();
  }
}

async function play(
  documents: Baselines,
  work: ReturnType<typeof simulatedWork>,
  minutes: number,
): Promise<string[]> {
  const watch = new RegressionWatch(documents, (error) => {
    throw error;
  });
  const run = runOf(`job-${minutes}`);
  const causes: string[] = [];
  let isOpen = false;
  for (let atMs = 0; atMs < minutes * MINUTE; atMs += INTERVAL_MS) {
    const nowMs = START_MS + atMs + INTERVAL_MS;
    for (const [agent, summary] of work(atMs)) watch.take(agent, run, summary, nowMs);
    const decision = watch.tick(run, nowMs, isOpen);
    if (decision?.do === "open") {
      isOpen = true;
      causes.push(decision.found.cause);
    }
    await watch.idle();
  }
  return causes;
}

it("what healthy runs are like is kept in the history, for jobs of any name that do the same", async () => {
  const documents = new Documents();
  const stepMs = 1500;
  expect(await play(documents, simulatedWork({ seed: 3, stepMs }), 20)).toEqual([]);
  expect(documents.all.size).toBe(1);
  const regression = { part: "dataloader", cost: 0.1, fromMs: 0 } as const;
  const slower = simulatedWork({ seed: 4, stepMs, regression });
  expect(await play(documents, slower, 6)).toEqual(["dataloader"]);
  const larger = simulatedWork({ seed: 4, stepMs, regression, machines: 6 });
  expect(await play(documents, larger, 6)).toEqual([]);
});

it("the oldest of many is forgotten", async () => {
  const documents = new Documents();
  for (let k = 0; k < 200; k++)
    documents.all.set(`healthy-work/${k}`, { savedMs: k === 7 ? 1 : 2 + k, windows: [] });
  await play(documents, simulatedWork({ seed: 3 }), 15);
  expect(documents.all.size).toBe(200);
  expect(documents.all.has("healthy-work/7")).toBe(false);
});

it("documents of other versions tell nothing", () => {
  for (const odd of [null, {}, { windows: 3 }, { windows: [{ stepMs: 3 }] }, { windows: [null] }])
    expect(windowsOf(odd)).toEqual([]);
});
