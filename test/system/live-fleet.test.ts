/** A simulated job played in real time: rings as probes leave them, processes that die, faults on command. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { readRing } from "../../src/ingest/probe-ring/read-ring.ts";
import { copyRing } from "../../src/live/agent/rings/copy-ring.ts";
import { thisMachine } from "../../src/live/agent/process-state.ts";
import { inspectRing } from "../../src/live/agent/rings/ring-file.ts";
import { ringNode } from "../../src/live/agent/ring-node.ts";
import { startControl, type ControlServer } from "../../src/live/fleet/control-server.ts";
import { LiveRun } from "../../src/live/fleet/live-run.ts";
import { Rehearsal } from "../../src/live/fleet/rehearsal.ts";
import { stageOperators } from "../../src/live/fleet/stage-operators.ts";
import type { JobReport } from "../../src/live/wire/messages.ts";
import type { ValidationReport } from "../../src/model/validation.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../src/simulate/cluster/spec.ts";
import type { Steer } from "../../src/simulate/cluster/steering.ts";
import { FAULTLINE } from "../support/cli.ts";
import { SlowStorage } from "../../src/live/agent/evidence/slow-storage.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-fleet-"));
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FOREVER = Number.MAX_SAFE_INTEGER;
const SPEC = completeSpec({
  gpus: 16,
  tp: 2,
  pp: 2,
  microBatches: 3,
  layersPerStage: 2,
  gpusPerMachine: 8,
  iterations: FOREVER,
});
const EVERY_MS = 1000;

async function start(spec = SPEC): Promise<LiveRun> {
  const own = mkdtempSync(join(folder, "run-"));
  const options = { spec, everyMs: EVERY_MS, speed: 1, job: "sim", runNumber: 7, folder: own };
  const run = await LiveRun.start(options);
  closing.push(() => run.close());
  return run;
}

/** Time goes by in steps of 100 ms, as if it did. */
function playFor(run: LiveRun, fromMs: number, toMs: number): void {
  for (let ms = fromMs; ms <= toMs; ms += 100) run.step(run.startNs + ms * 1e6);
}

interface Row {
  readonly group: string;
  readonly isP2p: number;
  readonly isSend: number;
  readonly peer: number;
  readonly seq: number;
  readonly createdNs: number;
  readonly startedNs: number;
  readonly completedNs: number;
}

/** Operators of a rank's native ring, times since the start of the job. */
function recorded(run: LiveRun, rank: number): { rows: Row[]; iterations: number[] } {
  const [native, python] = run.ranks[rank]!.rings;
  const reading = readRing(native!.path, readFileSync(native!.path));
  expect(reading.defects).toEqual([]);
  const { ops, groups } = reading.dumps![0]!;
  const { startedNs } = reading.probes![0]!;
  const since = (ns: number): number => Math.round(ns - startedNs);
  const rows = Array.from({ length: ops.count }, (_, i) => ({
    group: groups[ops.group[i]!]!.desc,
    isP2p: ops.isP2p[i]!,
    isSend: ops.isSend[i]!,
    peer: ops.peer[i]!,
    seq: ops.isP2p[i] === 1 ? 0 : ops.seq[i]!,
    createdNs: since(ops.createdNs[i]!),
    startedNs: since(ops.startedNs[i]!),
    completedNs: since(ops.completedNs[i]!),
  }));
  const marks = readRing(python!.path, readFileSync(python!.path));
  return { rows, iterations: [...(marks.series?.[0]?.iteration ?? [])] };
}

/** The same from the engine alone, as far as it has happened by `untilMs`. */
function expected(run: LiveRun, rank: number, untilMs: number, steer?: Steer): Row[] {
  const { scale, simulation, groups } = run.played;
  const { lanes } = simulation.lanes;
  const layout = stageOperators(simulation, Math.floor(rank / lanes));
  const rows: Row[] = [];
  const seqs = new Map<string, number>();
  const seen = (ns: number): number => (ns * scale <= untilMs * 1e6 ? Math.round(ns * scale) : NaN);
  for (const times of simulate(SPEC).iterations(steer)) {
    const { issueNs, startNs, endNs } = times.stages[layout.stage]!;
    for (let place = 0; place < layout.count; place++) {
      const at = layout.op[place]! * lanes + (rank % lanes);
      if (!(issueNs[at]! * scale <= untilMs * 1e6)) return rows;
      const { desc } = groups.groups[groups.groupOf(rank, layout.role[place]!)]!;
      const isP2p = layout.code[place] === 0 ? 0 : 1;
      const key = `${desc} ${isP2p}`;
      seqs.set(key, (seqs.get(key) ?? 0) + 1);
      rows.push({
        group: desc,
        isP2p,
        isSend: layout.code[place] === 1 ? 1 : 0,
        peer: layout.peerStage[place]!,
        seq: isP2p === 1 ? 0 : seqs.get(key)!,
        createdNs: seen(issueNs[at]!),
        startedNs: seen(startNs[at]!),
        completedNs: seen(endNs[at]!),
      });
    }
  }
  return rows;
}

/** Clocks and rings count whole nanoseconds, of which some are lost on the way through 53 bits. */
function expectSame(got: readonly Row[], wanted: readonly Row[]): void {
  expect(got.length).toBe(wanted.length);
  got.forEach((row, i) => {
    const { createdNs, startedNs, completedNs, ...rest } = wanted[i]!;
    expect(row).toMatchObject(rest);
    const near = (a: number, b: number): void => {
      if (Number.isNaN(b)) expect(a).toBeNaN();
      else expect(Math.abs(a - b)).toBeLessThanOrEqual(4);
    };
    near(row.createdNs, createdNs);
    near(row.startedNs, startedNs);
    near(row.completedNs, completedNs);
  });
}

describe("rings of a played job", () => {
  test("hold the engine's operators, those under way among them", async () => {
    const run = await start();
    playFor(run, 0, 5250);
    for (const rank of [0, 5, 8, 15]) {
      const { rows, iterations } = recorded(run, rank);
      expectSame(rows, expected(run, rank, 5200));
      expect(rows.some(({ completedNs }) => Number.isNaN(completedNs))).toBe(true);
      expect(iterations.slice(0, 4)).toEqual([1, 2, 3, 4]);
    }
    const header = inspectRing(run.ranks[3]!.rings[0]!.path);
    if (typeof header === "string") throw new Error(header);
    const { pid, startTicks } = run.ranks[3]!.process;
    expect(header.header).toMatchObject({ pid, startTicks, rank: 3, worldSize: 16, job: "sim" });
    expect(existsSync(`/proc/${pid}`)).toBe(true);
  });

  test("a healthy iteration takes as long as was asked for", async () => {
    const run = await start(completeSpec({ ...SPEC, noise: 0 }));
    playFor(run, 0, 10_500);
    expect(run.played.last!.iteration).toBe(11);
    expect(run.played.everyMs).toBeCloseTo(EVERY_MS);
  });

  test("a fault on command begins with the next iteration and ends when it is taken away", async () => {
    const run = await start();
    const { board } = run.played;
    playFor(run, 0, 3500);
    const { id } = board.add("gpu-slow:rank=9:severity=3");
    const next = run.played.last!.iteration + 1;
    playFor(run, 3600, 12_000);
    expect(board.faults[0]).toMatchObject({
      id,
      fromIteration: next,
      ranks: [9],
      toIteration: null,
    });
    expect(board.remove(id)).toBe(true);
    const last = run.played.last!.iteration;
    playFor(run, 12_100, 20_000);
    const [truth] = board.faults;
    expect(truth).toMatchObject({ fromIteration: next, toIteration: last });
    expect(truth!.firstEndMs!).toBeGreaterThan(truth!.fromMs!);
    const fault = { ...parseFault("gpu-slow:rank=9:severity=3"), from: next };
    const steer: Steer = (iteration) =>
      iteration === next ? { faults: [fault] } : iteration === last + 1 ? { faults: [] } : null;
    expectSame(recorded(run, 9).rows, expected(run, 9, 20_000, steer));
  });

  test("ranks that an agent asks to test themselves do so after that iteration, and find the slow link", async () => {
    const run = await start();
    const node = ringNode({
      storage: new SlowStorage(),
      folders: () => run.machines.map((one) => one.folder),
      logs: [],
      job: null,
      machineName: "node",
      nics: [],
      keepNs: 6e11,
      memoryBytes: 64 << 20,
      machine: thisMachine(),
      onTrouble: () => undefined,
    });
    playFor(run, 0, 3500);
    run.played.board.add("network-slow:link=4-6:severity=9");
    node.tick(Date.now());
    node.tick(Date.now());
    const [job] = node.introduce() as [JobReport];
    const request = {
      ask: "validate",
      job: job.job,
      run: job.run,
      group: [0, 2, 4, 6],
      atIteration: run.played.last!.iteration + 3,
      rounds: 1,
      gemm: true,
      ring: true,
      tree: false,
      stride: 1,
      repeats: 3,
      mb: 16,
      limitMs: 5000,
      waitMs: 20_000,
    } as const;
    const answer = node.answer(request);
    expect(await node.answer(request)).toMatchObject({ kind: "refused" });
    playFor(run, 3600, 12_000);
    const reply = await answer;
    node.close();
    if (reply.kind !== "evidence") throw new Error(JSON.stringify(reply));
    const transfers = reply.files
      .map(({ bytes }) => JSON.parse(Buffer.from(bytes).toString()) as ValidationReport)
      .flatMap((report) => report.transfers);
    const slow = transfers.filter(({ ms }) => ms[0]! > 0.3);
    expect(reply.files).toHaveLength(4);
    expect(transfers).toHaveLength(4);
    expect(slow).toMatchObject([{ from: 4, to: 6 }]);
    expect(
      await node.answer({ ask: "unknown", job: job.job, run: job.run, word: "dance" }),
    ).toEqual({
      kind: "refused",
      why: 'this agent does not know how to answer "dance"',
    });
  });

  test("a GPU that hangs leaves operators issued and not started", async () => {
    const run = await start();
    playFor(run, 0, 2500);
    run.played.board.add("gpu-hang:rank=5");
    const at = run.played.last!.iteration + 1;
    playFor(run, 2600, 15_000);
    expect(run.played.isHung).toBe(true);
    const fault = { ...parseFault("gpu-hang:rank=5"), from: at };
    const steer: Steer = (iteration) => (iteration === at ? { faults: [fault] } : null);
    for (const rank of [5, 4, 13]) {
      const { rows, iterations } = recorded(run, rank);
      expectSame(rows, expected(run, rank, 15_000, steer));
      expect(rows.filter(({ completedNs }) => Number.isNaN(completedNs)).length).toBeGreaterThan(0);
      expect(iterations.at(-1)).toBe(at - 1);
    }
    expect(run.ranks.every((one) => !one.process.isGone)).toBe(true);
  });

  test("processes are stopped and killed as the fault says", async () => {
    const stateOf = (pid: number): string | undefined =>
      /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1];
    const stopped = await start();
    stopped.played.board.add("process-stopped:rank=3:from=2");
    playFor(stopped, 0, 5000);
    const { pid } = stopped.ranks[3]!.process;
    await expect.poll(() => stateOf(pid), { timeout: 60_000 }).toBe("T");
    const killed = await start();
    killed.played.board.add("process-gone:rank=6:from=2");
    playFor(killed, 0, 5000);
    await expect.poll(() => killed.ranks[6]!.process.isGone, { timeout: 60_000 }).toBe(true);
    expect(killed.ranks.filter((one) => one.process.isGone).map(({ rank }) => rank)).toEqual([6]);
    // Nobody is left to say that the process lives.
    const beatNs = killed.ranks[6]!.rings[0]!.beatNs;
    playFor(killed, 5100, 9000);
    expect(killed.ranks[6]!.rings[0]!.beatNs).toBe(beatNs);
    expect(killed.ranks[7]!.rings[0]!.beatNs).toBeGreaterThan(beatNs);
  });
});

test("whoever copies a ring while it is written never gets half a record", async () => {
  const path = join(mkdtempSync(join(folder, "torn-")), "job.r0.1.native.ring");
  const source = fileURLToPath(new URL("../../src/live/fleet/live-ring.ts", import.meta.url));
  // As many records as a job has in hours, in a ring of 64: laps come and go while it is read.
  const script = `
    const { LiveRing } = await import(${JSON.stringify(source)});
    const ring = new LiveRing({ path: ${JSON.stringify(path)}, rank: 0, worldSize: 1, pid: 1, startTicks: 0,
      records: 64, monotonicNs: 1000n, communicators: [{ id: 1n, rank: 0, size: 2, name: "w" }] });
    console.log("ready");
    let n = 0;
    const open = [];
    const round = () => {
      for (let k = 0; k < 200; k++) {
        for (const ticket of open.splice(0)) ring.ended(ticket, 2000 + ticket * 1000 + 500);
        for (let i = 0; i < 1 + (n % 9); i++, n++)
          open.push(ring.append({ kind: 1, func: 1, dtype: 9, flags: 3, group: 0, a: n + 1, b: n + 1, c: 0,
            issuedNs: 2000 + n * 1000, startedNs: 2000 + n * 1000 + 100, endedNs: 0 }));
        ring.flush();
      }
      setImmediate(round);
    };
    round();
    process.stdin.on("end", () => process.exit()).resume();`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  closing.push(() => ended(child));
  await once(child.stdout, "data");
  const machine = thisMachine();
  let seen = 0;
  for (let newest = 0, copies = 0; copies < 200 || newest < 20_000; copies++) {
    const ring = inspectRing(path);
    if (typeof ring === "string") throw new Error(ring);
    const { ops } = readRing(path, copyRing(ring, machine).bytes).dumps?.[0] ?? { ops: null };
    for (let i = 0; ops !== null && i < ops.count; i++) {
      const n = ops.seq[i]!;
      const createdNs = ops.createdNs[i]! - ops.createdNs[0]!;
      expect(ops.inputNumel[i]).toBe(n);
      expect(createdNs).toBe((n - ops.seq[0]!) * 1000);
      expect(ops.startedNs[i]! - ops.createdNs[i]!).toBe(100);
      const took = ops.completedNs[i]! - ops.createdNs[i]!;
      expect(Number.isNaN(took) || took === 500).toBe(true);
      newest = n;
      seen++;
    }
    if (copies % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(seen).toBeGreaterThan(1000);
}, 60_000);

describe("a rehearsal takes words", () => {
  async function begin(): Promise<{ rehearsal: Rehearsal; control: ControlServer }> {
    const rehearsal = await Rehearsal.start({
      spec: SPEC,
      everyMs: 100,
      speed: 1,
      job: "sim",
      runNumber: 1,
      tickMs: 10,
      folder: mkdtempSync(join(folder, "words-")),
      say: () => undefined,
    });
    closing.push(() => rehearsal.close());
    const control = await startControl(0, rehearsal);
    closing.push(() => control.close());
    return { rehearsal, control };
  }

  test("over HTTP", async () => {
    const { control } = await begin();
    const call = async (method: string, path: string, body?: string) => {
      const headers = body === undefined ? {} : { "content-type": "application/json" };
      const options = { method, headers, ...(body === undefined ? {} : { body }) };
      const response = await fetch(control.url + path, options);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const fault = (words: string) => call("POST", "/faults", JSON.stringify({ fault: words }));
    expect(await fault("gpu-slow:rank=9:severity=2")).toMatchObject({
      status: 201,
      body: { id: 1 },
    });
    expect((await fault("gpu-slow:rank=99")).status).toBe(400);
    expect((await call("POST", "/faults", "{")).status).toBe(400);
    expect((await call("POST", "/faults", `"${"x".repeat(20_000)}"`)).status).toBe(400);
    const since = async () =>
      ((await call("GET", "/state")).body["faults"] as { fromIteration: number | null }[])[0];
    await expect
      .poll(since, { timeout: 60_000 })
      .toMatchObject({ fromIteration: expect.any(Number) });
    expect(await call("DELETE", "/faults/1")).toMatchObject({ status: 200, body: { removed: 1 } });
    expect((await call("DELETE", "/faults/1")).status).toBe(404);
    await expect
      .poll(since, { timeout: 60_000 })
      .toMatchObject({ toIteration: expect.any(Number) });
    expect(await call("DELETE", "/faults")).toMatchObject({ status: 200, body: { removed: 0 } });
    const typeless = await fetch(`${control.url}/faults`, { method: "POST", body: "{}" });
    expect(typeless.status).toBe(415);
  });

  test("on a line; a job that hangs is started anew", async () => {
    const { rehearsal } = await begin();
    expect(await rehearsal.command("gpu-hang:rank=3")).toMatch(/^1: gpu-hang/);
    await expect.poll(() => rehearsal.state().isHung, { timeout: 60_000 }).toBe(true);
    expect(await rehearsal.command("gpu-slow:rank=1")).toMatch(/stands still/);
    const before = rehearsal.state();
    expect(await rehearsal.command("restart")).toMatch(/^started anew/);
    const after = rehearsal.state();
    expect(after.run).not.toBe(before.run);
    expect(after).toMatchObject({ isHung: false, faults: [] });
    await expect.poll(() => rehearsal.state().iteration, { timeout: 60_000 }).toBeGreaterThan(3);
    expect(await rehearsal.command("nonsense\u001b[2J")).not.toContain("\u001b");
    expect(await rehearsal.command("clear")).toMatch(/^0 taken away/);
  });
});

describe("faultline simulate --live", () => {
  interface About {
    readonly control: string;
    readonly agents: readonly number[];
    readonly machines: readonly { readonly folder: string }[];
  }

  async function play(
    ...more: string[]
  ): Promise<{ child: ChildProcess; about: About; pids: number[] }> {
    // Nobody listens there: agents try, and try again.
    const words = ["simulate", "--live", "http://127.0.0.1:9", "--gpus", "4", "--every", "200ms"];
    const child = spawn(FAULTLINE, [...words, "--control", "0", "--json", "--quiet", ...more], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, TMPDIR: mkdtempSync(join(folder, "cli-")) },
    });
    closing.push(() => ended(child));
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const about = JSON.parse(line.toString()) as About;
    const ranks = ranksIn(about.machines.map((one) => one.folder));
    expect(ranks.length).toBe(4);
    return { child, about, pids: [...about.agents, ...ranks] };
  }

  const alive = (pids: readonly number[]): string[] =>
    pids.map(stateOf).filter((state) => !/^[XZ]?$/.test(state));

  test("kill -9 leaves no process behind, not even a stopped one", async () => {
    const { child, about, pids } = await play();
    await fetch(`${about.control}/faults`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ fault: "process-stopped:rank=2" }),
    });
    await expect.poll(() => pids.map(stateOf), { timeout: 60_000 }).toContain("T");
    child.kill("SIGKILL");
    await once(child, "exit");
    await expect.poll(() => alive(pids), { timeout: 60_000 }).toEqual([]);
  }, 60_000);

  test("Ctrl-C ends agents and ranks and removes their folders", async () => {
    const { child, about, pids } = await play("--agents", "1");
    expect(about.agents.length).toBe(1);
    child.kill("SIGINT");
    // Once more: whoever is in a hurry does not wait until agents have seen the end of the job.
    setTimeout(() => child.kill("SIGINT"), 200);
    const [code] = (await once(child, "exit")) as [number | null];
    expect(code).toBe(0);
    expect(alive(pids)).toEqual([]);
    expect(about.machines.filter((one) => existsSync(one.folder))).toEqual([]);
  }, 60_000);
});

function ranksIn(folders: readonly string[]): number[] {
  return folders.flatMap((one) =>
    readdirSync(one).flatMap((name) => {
      const pid = /\.r\d+\.(\d+)\.native\.ring$/.exec(name)?.[1];
      return pid === undefined ? [] : [Number(pid)];
    }),
  );
}

/** "" where there is no such process. */
function stateOf(pid: number): string {
  try {
    return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1] ?? "";
  } catch {
    return "";
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
