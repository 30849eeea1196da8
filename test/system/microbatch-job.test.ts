/** Jobs that ask a controller for their micro-batches: a real one of PyTorch, and one that is made of threads. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startController } from "../../src/live/service/microbatches/controller.ts";
import {
  fakeJob,
  type Line,
  python,
  pythonOfTorch,
  script,
  start,
  type Started,
} from "./microbatch-job/processes.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { unlessThere } from "../support/lacking.ts";
import { FAULTLINE } from "../support/cli.ts";
import { longTest } from "../support/cases.ts";

const middle = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!;

const RANKS = 4;
/** As in train.py. */
const FAULT = { from: 6, to: 26 };

/** Runs the program on all ranks; their lines. */
async function onAllRanks(program: string, ...words: string[]): Promise<Line[][]> {
  const folder = mkdtempSync(join(tmpdir(), "faultline-microbatches-"));
  try {
    const ranks = Array.from({ length: RANKS }, (_, rank) => {
      const where = [String(rank), String(RANKS), join(folder, "meet")];
      return start(pythonOfTorch!, [script(program), ...where, ...words]);
    });
    await Promise.all(ranks.map(({ ended }) => ended));
    return ranks.map(({ lines }) => lines);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The lines of rank 0. */
async function train(url: string): Promise<Line[]> {
  const [first, ...others] = await onAllRanks("train.py", url);
  for (const lines of others)
    expect(lines.map(({ counts }) => counts)).toEqual(first!.map(({ counts }) => counts));
  return first!;
}

const whyNoTorch = unlessThere(pythonOfTorch !== null, "PyTorch", "python3-torch");

describe.skipIf(pythonOfTorch === null)(`a job of PyTorch with a slow replica${whyNoTorch}`, () => {
  longTest(
    "gets faster with a controller, and learns the same",
    async () => {
      const alone = await train("none");
      const controller = await startController(
        { groups: RANKS, total: 16, port: 0 },
        { nowMs: () => Date.now() },
      );
      const helped = await train(controller.url);
      await controller.stop();

      const counts = helped.slice(0, -1).map((line) => line.counts!);
      for (const each of counts) expect(each.reduce((sum, m) => sum + m, 0)).toBe(16);
      expect(counts[0]).toEqual([4, 4, 4, 4]);
      expect(counts[FAULT.to - 1]![2]).toBeLessThanOrEqual(2);
      expect(counts.at(-1)).toEqual([4, 4, 4, 4]);

      // The last five iterations of the fault: four micro-batches of 80 ms against one.
      const late = (lines: readonly Line[]): number =>
        middle(lines.slice(FAULT.to - 5, FAULT.to).map(({ seconds }) => seconds!));
      expect(late(alone)).toBeGreaterThan(0.32);
      expect(late(helped)).toBeLessThan(0.65 * late(alone));

      const [wanted, got] = [alone.at(-1)!.parameters!, helped.at(-1)!.parameters!];
      expect(wanted.length).toBe(8 * 16 + 16 + 16 + 1);
      wanted.forEach((value, i) => expect(got[i]).toBeCloseTo(value, 9));
    },
    300_000,
  );

  it("averages gradients over the ranks that hold the same stage, and no others", async () => {
    const gradients = (await onAllRanks("stages.py")).map((lines) => lines[0]!.gradient);
    // Rank r of stages [0, 1] and [2, 3] has the gradient r + 1.
    expect(gradients).toEqual([1.5, 1.5, 3.5, 3.5]);
  });
});

function serve(port: number): Started {
  const flags = ["--groups", "4", "--total", "16", "--port", String(port), "--json"];
  return start(FAULTLINE, ["plan", "serve", ...flags]);
}

const whyNoPython = unlessThere(python !== null, "Python", "python3");

describe.skipIf(python === null)(`a job of threads${whyNoPython}`, () => {
  it("goes on when the controller is killed, and with one that comes back", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const first = serve(port);
    await until(
      () => first.said().includes(url),
      () => first.said(),
    );
    const job = fakeJob(url, 100_000, 0.03, 2);
    const moved = (): boolean => job.lines.at(-1)?.counts?.[2] === 1;
    await until(moved, () => job.said());
    // The change is a line of JSON on stdout and one for people on stderr.
    expect(first.lines).toHaveLength(1);
    expect(first.lines[0]).toMatchObject({ job: "fake", counts: job.lines.at(-1)!.counts });
    expect(first.said()).toMatch(/fake, iteration \d+: \[4, 4, 4, 4\] → .* expected: replica 2 /);

    first.child.kill("SIGKILL");
    await until(
      () => job.lines.at(-1)!.trouble !== null,
      () => job.said(),
    );
    const then = job.lines.length;
    await until(
      () => job.lines.length > then + 30,
      () => job.said(),
    );
    for (const { counts } of job.lines.slice(then)) expect(counts![2]).toBe(1);
    expect(job.said().match(/the counts in force stay/g)).toHaveLength(1);

    const second = serve(port);
    await until(
      () => job.lines.at(-1)!.trouble === null,
      () => job.said(),
    );
    // It takes over what is in force, so nothing moves.
    const again = job.lines.length;
    await until(
      () => job.lines.length > again + 30,
      () => job.said(),
    );
    for (const { counts } of job.lines.slice(again)) expect(counts![2]).toBe(1);
    const state = (await (await fetch(`${url}/v1/jobs/fake`)).json()) as Record<string, unknown>;
    expect(state).toMatchObject({ remark: null, counts: job.lines.at(-1)!.counts, changes: [] });
    second.child.kill("SIGTERM");
    await second.ended;
    job.child.kill("SIGKILL");
  });

  it("takes no nonsense from whoever answers in the controller's place", async () => {
    const plans = [
      { counts: [4, 4, 4, 5] },
      { counts: [16, 0, 0, 0] },
      { counts: [20, -4, -4, 4] },
      { counts: [8, 8] },
      { counts: [4, 4, 4, "4"] },
      { counts: [3.5, 4.5, 4, 4] },
      { counts: null },
      [],
      null,
    ].map((plan) => JSON.stringify(plan));
    const bodies = [...plans, "<html>", "", "\u0000", "1".repeat(2 << 20)];
    const asked = new Set<number>();
    const server = createServer((request, response) => {
      request.resume();
      const which = Number(request.url!.split("/")[1]);
      asked.add(which);
      const body = bodies[which];
      // One does not answer at all.
      if (body !== undefined) response.end(request.method === "POST" ? "{}" : body);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    try {
      const startedMs = performance.now();
      const jobs = [...bodies.keys(), bodies.length].map((which) =>
        fakeJob(`http://127.0.0.1:${port}/${which}`, 50, 0.02, 2),
      );
      await Promise.all(jobs.map(({ ended }) => ended));
      for (const { lines } of jobs) {
        expect(lines).toHaveLength(50);
        for (const { counts } of lines) expect(counts).toEqual([4, 4, 4, 4]);
        expect(lines.at(-1)!.trouble).not.toBeNull();
      }
      expect(asked.size).toBe(jobs.length);
      // A second of iterations. Who waits half a second for each answer to a question and a report needs fifty.
      expect(performance.now() - startedMs).toBeLessThan(45_000);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
