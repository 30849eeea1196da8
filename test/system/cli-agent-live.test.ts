/** `faultline agent --server`: the command as a user starts it, against the service's end of the wire. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KIND } from "../../src/ingest/probe-ring/layout.ts";
import { readRing } from "../../src/ingest/probe-ring/read-ring.ts";
import { agoNs, TestRing } from "../support/live/ring.ts";
import { hear, startService, type Heard, type TestService } from "../support/live/bus.ts";
import { FAULTLINE } from "../support/cli.ts";
import { until } from "../support/until.ts";

const TOKEN = "agent-token-1";
const MS = 1_000_000n;
let folder: string;
let dir: string;
const children: ChildProcess[] = [];
const services: TestService[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-cli-live-"));
  dir = join(folder, "rings");
  mkdirSync(dir);
  writeFileSync(join(folder, "token"), `${TOKEN}\n`);
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const service of services.splice(0)) await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Agent {
  readonly child: ChildProcess;
  readonly said: { stdout: string; stderr: string };
  /** Told to end; its exit status. */
  end(): Promise<number | null>;
}

function agent(...words: string[]): Agent {
  const { FAULTLINE_TOKEN: _, ...env } = process.env;
  const child = spawn(FAULTLINE, ["agent", ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    env,
  });
  children.push(child);
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => (said.stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (said.stderr += chunk.toString()));
  const exited = once(child, "close");
  return {
    child,
    said,
    async end() {
      child.kill("SIGTERM");
      return ((await exited) as [number | null])[0];
    },
  };
}

async function serve(heard: Heard, port = 0): Promise<TestService> {
  const service = await startService(
    heard,
    {
      authorize: ({ headers }) =>
        headers.authorization === `Bearer ${TOKEN}`
          ? { name: "test", agent: null, jobs: null }
          : { status: 401, why: "no such token" },
    },
    port,
  );
  services.push(service);
  return service;
}

/** A rank with both rings; each step is an iteration of one all-reduce of 10 ms. */
class Rank {
  readonly native: TestRing;
  readonly python: TestRing;
  #iteration = 0;
  #nowNs = agoNs(60_000);

  constructor(rank: number) {
    const common = { folder: dir, job: "llama", rank, worldSize: 4 };
    this.native = new TestRing({ ...common, records: 1024 });
    this.python = new TestRing({ ...common, records: 1024, writer: "python" });
    this.native.communicator(0, "world", 4, { id: 0x77n });
  }

  step(): void {
    const began = this.#nowNs;
    this.#iteration++;
    this.native.append({
      kind: KIND.collective,
      func: 1,
      group: 0,
      b: this.#iteration,
      issuedNs: began + MS,
      startedNs: began + 2n * MS,
      endedNs: began + 12n * MS,
    });
    this.#nowNs += 100n * MS;
    this.python.append({
      kind: KIND.iteration,
      a: this.#iteration,
      issuedNs: began,
      endedNs: this.#nowNs,
    });
  }
}

const kinds = (heard: Heard, kind: string) =>
  heard.reports.flatMap(({ report }) => (report.kind === kind ? [report] : []));

describe("faultline agent --server", () => {
  it("reports, answers, comes back after the service was away, and ends in order", async () => {
    const ranks = [new Rank(0), new Rank(1)];
    for (const rank of ranks) for (let i = 0; i < 5; i++) rank.step();
    const log = join(folder, "rank1.log");
    writeFileSync(log, "an old line\n");
    const first = hear();
    const service = await serve(first);
    const running = agent(
      `--server=${service.url}`,
      `--token-file=${join(folder, "token")}`,
      `--dir=${dir}`,
      `--log=${join(folder, "rank*.log")}`,
      "--machine=node7",
    );
    await until(() => kinds(first, "points").length > 0, "points");
    const points = kinds(first, "points")[0]!;
    if (points.kind !== "points") throw new Error(points.kind);
    expect([...points.rank]).toEqual([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    expect(points.iteration.slice(0, 5)).toEqual(Float64Array.of(1, 2, 3, 4, 5));
    expect([points.durationMs[7], points.collectiveMs[7]]).toEqual([100, 10]);
    const about = { job: "llama", run: "c-0000000000000077" };
    expect(kinds(first, "job")).toMatchObject([{ ...about, worldSize: 4, ranks: { length: 2 } }]);
    await until(() => kinds(first, "beat").length > 0, "a beat");

    appendFileSync(log, "NVRM: Xid (PCI:0000:3b:00): 79, GPU \u001b[31mhas fallen off the bus.\n");
    await until(() => kinds(first, "event").length > 0, "the log's failure");
    expect(kinds(first, "event")).toMatchObject([{ what: "log-failure", ranks: [1] }]);

    const operators = await service.bus.ask(
      "node7",
      { ask: "operators", ...about, rank: 1, fromIteration: 3, toIteration: 99 },
      60_000,
    );
    expect(operators).toMatchObject({ kind: "operators", iteration: Float64Array.of(3, 4, 5) });
    const evidence = await service.bus.ask(
      "node7",
      { ask: "evidence", ...about, ranks: [0], records: 64, stacks: false, logBytes: 100 },
      60_000,
    );
    if (evidence.kind !== "evidence") throw new Error(evidence.kind);
    const native = evidence.files.find(({ name }) => name.includes(".native."))!;
    expect(readRing("a.ring", native.bytes).dumps![0]!.ops.count).toBe(5);

    const port = Number(new URL(service.url).port);
    services.splice(0);
    await service.stop();
    for (const rank of ranks) rank.step();
    const second = hear();
    await serve(second, port);
    await until(() => kinds(second, "job").length > 0, "the job again");
    const iterations = (): number[] =>
      kinds(second, "points").flatMap((one) => (one.kind === "points" ? [...one.iteration] : []));
    await until(() => iterations().filter((n) => n === 6).length >= 2, "what happened meanwhile");
    expect(await running.end()).toBe(0);
    expect(running.said.stderr).toBe("");
    const lines = running.said.stdout.split("\n").map((line) => line.replace(/^\S+Z /, ""));
    expect(lines[0]).toBe(`agent node7 reports to ${service.url}; Ctrl-C stops it`);
    expect(lines.filter((line) => line === `connected to ${service.url}`)).toHaveLength(2);
    expect(lines.at(-2)).toBe("stopped");
    expect(running.said.stdout).not.toContain(TOKEN);
  });

  it("goes on without a service, says so once, and ends when it is told to", async () => {
    const rank = new Rank(0);
    rank.step();
    const heard = hear();
    const service = await serve(heard);
    services.splice(0);
    await service.stop();
    const running = agent("--server", service.url, "--dir", dir, "--json", "--machine", "node7");
    const lines = (): Record<string, unknown>[] =>
      running.said.stdout
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    await until(() => lines().some(({ event }) => event === "trouble"), "trouble");
    expect(lines()[0]).toMatchObject({ event: "started", agent: "node7", server: service.url });
    expect(await running.end()).toBe(0);
    expect(lines().filter(({ event }) => event === "trouble")).toHaveLength(1);
    expect(lines().at(-1)).toMatchObject({ event: "ended" });
  });

  it("says what is missing: no service, no name, no token", async () => {
    const bare = agent();
    const [status] = (await once(bare.child, "close")) as [number];
    expect(status).toBe(2);
    expect(bare.said.stdout).toBe("");
    expect(bare.said.stderr).toContain("Usage: faultline agent");
    expect(bare.said.stderr.trim().split("\n").at(-1)).toContain("give --server ws://");
    for (const [code, words] of [
      [2, ["--server", "ws://u:p@x"]],
      [3, ["--server", "ws://x", "--token-file", join(folder, "none")]],
    ] as const) {
      const wrong = agent(...words);
      expect((await once(wrong.child, "close")) as [number]).toEqual([code, null]);
      expect(wrong.said.stderr.trim().split("\n")).toHaveLength(1);
    }
  });
});
