/** The controller over real HTTP. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Controller, type ControllerOptions, startController } from "./controller.ts";
import type { JobChange } from "./jobs.ts";

let controller: Controller;
let nowMs = 1_800_000_000_000;
const DAY_MS = 24 * 3600 * 1000;
const changes: JobChange[] = [];

async function start(options: Partial<ControllerOptions> = {}): Promise<void> {
  controller = await startController(
    { groups: 4, total: 16, port: 0, ...options },
    { nowMs: () => nowMs, onChange: (change) => changes.push(change) },
  );
}

beforeEach(async () => {
  changes.length = 0;
  await start();
});
afterEach(() => controller.stop());

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function ask(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`${controller.url}${path}`, init);
  const text = await response.text();
  expect(text.trimEnd()).not.toContain("\n");
  return { status: response.status, body: JSON.parse(text) as Record<string, unknown> };
}

const JSON_TYPE = { headers: { "content-type": "application/json" } };
const post = (job: string, body: unknown): Promise<Answer> =>
  ask(`/v1/jobs/${job}/iterations`, {
    ...JSON_TYPE,
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

/** How many of so many clients are answered who come at the same time; all hold on until the last has its answer. */
async function answered(port: number, clients: number): Promise<number> {
  const sockets = Array.from({ length: clients }, () => connect(port, "127.0.0.1"));
  const told = await Promise.all(
    sockets.map(async (socket) => {
      const closed = once(socket, "close").catch(() => []);
      const data = once(socket, "data").catch(() => []);
      socket.write("GET /v1/jobs/a/plan?iteration=0 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
      return Promise.race([data, closed.then(() => [])]);
    }),
  );
  for (const socket of sockets) socket.destroy();
  return told.filter(([text]) => String(text).startsWith("HTTP/1.1 200")).length;
}

const EVEN = [4, 4, 4, 4];
const SLOW = { counts: EVEN, seconds: [0.4, 0.4, 2.4, 0.4] };

/** Reports iterations [from, to) of a job that follows the plan, replica 2 six times slower. */
async function runSlow(job: string, from: number, to: number, run = ""): Promise<void> {
  for (let iteration = from; iteration < to; iteration++) {
    const plan = await ask(`/v1/jobs/${job}/plan?iteration=${iteration}${run && `&run=${run}`}`);
    const counts = plan.body["counts"] as number[];
    const seconds = counts.map((m, i) => m * (i === 2 ? 0.6 : 0.1));
    expect(await post(job, { iteration, counts, seconds, run })).toMatchObject({ status: 200 });
  }
}

describe("controller", () => {
  it("plans even shares first, then what suits the reported times, and says why", async () => {
    expect((await ask("/v1/jobs/a/plan?iteration=0")).body).toEqual({
      iteration: 0,
      counts: EVEN,
      weights: [1, 1, 1, 1],
    });
    await runSlow("a", 0, 12);
    const { body } = await ask("/v1/jobs/a/plan?iteration=12");
    expect(body).toEqual({
      iteration: 12,
      counts: [5, 5, 1, 5],
      weights: [1.25, 1.25, 0.25, 1.25],
    });
    const state = (await ask("/v1/jobs/a")).body;
    expect(state).toMatchObject({ job: "a", groups: 4, total: 16, counts: [5, 5, 1, 5] });
    expect(state["changes"]).toEqual(changes);
    expect(changes).toHaveLength(1);
    expect(changes[0]).toMatchObject({ job: "a", before: EVEN, counts: [5, 5, 1, 5] });
    expect(controller.jobs.names()).toEqual(["a"]);
  });

  it("gives all who ask for an iteration the same, even if the allocation changes in between", async () => {
    const first = await Promise.all(
      Array.from({ length: 40 }, () => ask("/v1/jobs/a/plan?iteration=100")),
    );
    await runSlow("a", 0, 12);
    const later = await ask("/v1/jobs/a/plan?iteration=100");
    for (const { body } of [...first, later]) expect(body["counts"]).toEqual(EVEN);
    expect((await ask("/v1/jobs/a/plan?iteration=101")).body["counts"]).toEqual([5, 5, 1, 5]);
  });

  it("keeps jobs apart, and the starts of one job", async () => {
    await runSlow("a", 0, 12, "first");
    expect((await ask("/v1/jobs/b/plan?iteration=12")).body["counts"]).toEqual(EVEN);
    // Restarted from a checkpoint: iterations count from 5 again, on machines that nobody knows yet.
    expect((await ask("/v1/jobs/a/plan?iteration=5&run=second")).body["counts"]).toEqual(EVEN);
    const late = await post("a", { iteration: 12, ...SLOW, run: "first" });
    expect(late).toMatchObject({ status: 409 });
    expect((await ask("/v1/jobs/a")).body).toMatchObject({ run: "second", lastIteration: null });
  });

  it("refuses junk in a line, and goes on", async () => {
    const reports: unknown[] = [
      "",
      "{",
      "null",
      "[]",
      '"x"',
      "{}",
      { iteration: -1, ...SLOW },
      { iteration: 1.5, ...SLOW },
      { iteration: "1", ...SLOW },
      { iteration: 1e300, ...SLOW },
      { iteration: 1, counts: EVEN },
      { iteration: 1, counts: EVEN, seconds: [1, 1, 1] },
      { iteration: 1, counts: EVEN, seconds: "1111" },
      { iteration: 1, counts: [4, 4, 4], seconds: SLOW.seconds },
      { iteration: 1, counts: [4, 4, 4, 5], seconds: SLOW.seconds },
      { iteration: 1, counts: [8, 8, 0, 0], seconds: SLOW.seconds },
      { iteration: 1, counts: [20, -12, 4, 4], seconds: SLOW.seconds },
      { iteration: 1, counts: [4.5, 3.5, 4, 4], seconds: SLOW.seconds },
      { iteration: 1, counts: { length: 4 }, seconds: SLOW.seconds },
      { iteration: 1, ...SLOW, run: 7 },
      { iteration: 1, ...SLOW, run: "a\nb" },
      "\u0000\ufffd",
      "[".repeat(100_000),
    ];
    for (const body of reports) {
      const answer = await post("a", body);
      expect(answer.status, JSON.stringify(body).slice(0, 80)).toBe(400);
      expect(answer.body["error"]).toMatch(/^[^\n]{5,100}$/);
    }
    for (const name of ["..", "a%20b", "%00", "-x", "x".repeat(65), "a%0ab", "%2e%2e%2fetc", ""])
      expect((await ask(`/v1/jobs/${name}/plan?iteration=1`)).status).toBeGreaterThanOrEqual(400);
    for (const query of ["", "?iteration=", "?iteration=x", "?iteration=-1", "?iteration=1e9"])
      expect((await ask(`/v1/jobs/a/plan${query}`)).status).toBe(400);
    for (const path of ["/", "/v2/jobs", "/v1/jobs/a/b", "/v1/jobs/a/plan/x", "/v1/jobs/nobody"])
      expect((await ask(path)).status).toBe(404);
    expect(
      (await ask("/v1/jobs/a/plan?iteration=1", { ...JSON_TYPE, method: "DELETE" })).status,
    ).toBe(405);
    expect((await ask("/v1/jobs/a/iterations")).status).toBe(405);
    const text = { method: "POST", body: JSON.stringify({ iteration: 1, ...SLOW }) };
    expect((await ask("/v1/jobs/a/iterations", text)).status).toBe(415);
    // A time that could not be measured is no junk.
    const holes = { iteration: 1, counts: EVEN, seconds: [1, null, -3, "x"] };
    expect((await post("a", holes)).status).toBe(200);
    expect((await ask("/v1/jobs/a")).body["remark"]).toMatch(/^3 replicas gave no usable time/);
  });

  it("takes bodies of a MiB at most", async () => {
    const answer = await post("a", " ".repeat((1 << 20) + 1));
    expect(answer).toMatchObject({ status: 413 });
    const just = JSON.stringify({ iteration: 1, ...SLOW });
    expect((await post("a", just.padEnd(1 << 20))).status).toBe(200);
  });

  it("survives what is no HTTP and clients that hang up", async () => {
    const port = Number(new URL(controller.url).port);
    const lines = [
      "\u0000\u0001\u0002\r\n\r\n",
      "GET\r\n\r\n",
      "POST /v1/jobs/a/iterations HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    ];
    for (const line of lines) {
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      socket.write(line);
      if (line.startsWith("POST")) socket.destroy();
      else expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 400 /);
      socket.destroy();
    }
    expect((await ask("/v1/jobs/a/plan?iteration=0")).status).toBe(200);
  });

  it("bounds the number of jobs, and forgets those of yesterday where a new one needs the place", async () => {
    const plan = async (job: string): Promise<number> =>
      (await ask(`/v1/jobs/${job}/plan?iteration=0`)).status;
    for (let i = 0; i < 64; i++) expect(await plan(`j${i}`)).toBe(200);
    expect(await plan("more")).toBe(429);
    nowMs += DAY_MS - 1;
    expect(await plan("j7")).toBe(200);
    expect((await post("j9", { iteration: 0, ...SLOW })).status).toBe(200);
    expect(await plan("more")).toBe(429);
    nowMs += 1;
    expect(controller.jobs.names()).toHaveLength(64);
    expect(await plan("more")).toBe(200);
    expect(controller.jobs.names()).toEqual(["j7", "j9", "more"]);
  });

  it("refuses an iteration far ahead, so that those which follow still count", async () => {
    const report = (iteration: number, run = ""): Promise<Answer> =>
      post("a", { iteration, ...SLOW, run });
    expect((await report(7_000_000)).status).toBe(200);
    for (const iteration of [Number.MAX_SAFE_INTEGER, 8_000_001]) {
      const answer = await report(iteration);
      expect(answer.status).toBe(400);
      expect(answer.body["error"]).toBe(
        `iteration ${iteration} is more than 1000000 after the last one, 7000000`,
      );
    }
    expect((await report(8_000_000)).status).toBe(200);
    expect((await ask("/v1/jobs/a")).body).toMatchObject({ lastIteration: 8e6, remark: null });
    // What is too old is taken, but it is said that it does not count.
    expect((await report(5)).status).toBe(200);
    expect((await ask("/v1/jobs/a")).body["remark"]).toBe(
      "iteration 5 was reported after iteration 8000000 and does not count",
    );
    expect((await report(0, "second")).status).toBe(200);
  });

  it("frees the places of connections that are silent, slow or never hang up", async () => {
    await controller.stop();
    await start({ patienceMs: 300 });
    const port = Number(new URL(controller.url).port);
    const starts = [
      "",
      "GET /v1/jobs/a/plan HTTP/1.1\r\nX: ",
      "\u0000\u0001\r\n\r\n",
      "POST /v1/jobs/a/iterations HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
      "GET /v1/jobs/a/plan?iteration=0 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(3),
    ];
    const sockets = await Promise.all(
      Array.from({ length: 512 }, async (_, i) => {
        // Half-open and paused: the other side's end is not answered, nor even read.
        const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).pause();
        socket.on("error", () => undefined);
        await once(socket, "connect");
        socket.write(starts[i % starts.length]!);
        return socket;
      }),
    );
    const drips = setInterval(() => {
      for (let i = 1; i < sockets.length; i += starts.length) sockets[i]!.write("y");
    }, 50);
    try {
      // Every kind has lost its places.
      await expect.poll(() => answered(port, 500), { timeout: 90_000, interval: 200 }).toBe(500);
    } finally {
      clearInterval(drips);
      for (const socket of sockets) socket.destroy();
    }
  });

  it("asks for the token where it has one", async () => {
    await controller.stop();
    await start({ token: "secret" });
    const path = "/v1/jobs/a/plan?iteration=0";
    const bearer = (token: string): RequestInit => ({ headers: { authorization: token } });
    for (const wrong of [{}, bearer("secret"), bearer("Bearer secre"), bearer("Bearer secrett")])
      expect((await ask(path, wrong)).status).toBe(401);
    expect((await ask(path, bearer("Bearer secret"))).status).toBe(200);
  });

  it("refuses shapes that are not possible, and a port that is taken", async () => {
    const env = { nowMs: () => 0 };
    const shapes = [
      { groups: 4, total: 3 },
      { groups: 4, total: 16, multipleOf: 3 },
      { groups: 0, total: 16 },
      { groups: 32_769, total: 65_538 },
      { groups: 4, total: 16, bubble: -1 },
    ];
    for (const shape of shapes)
      await expect(startController({ ...shape, port: 0 }, env)).rejects.toThrow(/micro|possible/);
    const port = Number(new URL(controller.url).port);
    const refused = (port: number, host = "127.0.0.1"): Promise<unknown> =>
      startController({ groups: 4, total: 16, port, host }, env).catch((error: unknown) => error);
    expect(await refused(port)).toMatchObject({
      message: expect.stringContaining("cannot listen on 127.0.0.1") as string,
      hint: "give another --port",
    });
    for (const none of [99_999, -1, 7.5])
      expect(await refused(none)).toMatchObject({ hint: "give another --port", exitCode: 2 });
    // A documentation address, which no machine has.
    expect(await refused(0, "192.0.2.1")).toMatchObject({
      message: expect.stringContaining("cannot listen on 192.0.2.1") as string,
    });
  });
});
