/** The command `faultline agent` as a user calls it, with probes, pipes and a RAS that are played. */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HEADER, KIND } from "../../src/ingest/probe-ring/layout.ts";
import { agoNs, TestRing, writeRing } from "../support/live/ring.ts";

const faultline = fileURLToPath(new URL("../../faultline", import.meta.url));
let folder: string;
let dir: string;
const children: ChildProcess[] = [];
const servers: Server[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-cli-agent-"));
  dir = join(folder, "rings");
  mkdirSync(dir);
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const server of servers.splice(0)) server.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(...words: string[]): Promise<Ran> {
  return new Promise((done) => {
    execFile(faultline, words, { cwd: folder }, (error, stdout, stderr) => {
      done({ status: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}

const agent = (...words: string[]): Promise<Ran> => run("agent", ...words, "--dir", dir);

async function asked(...words: string[]): Promise<Record<string, unknown>> {
  const { stdout, status, stderr } = await agent(...words, "--json");
  expect(`${status} ${status === 0 ? "" : stderr}`).toBe("0 ");
  return JSON.parse(stdout) as Record<string, unknown>;
}

async function idle(environment: Record<string, string> = {}): Promise<number> {
  const child = spawn("sleep", ["600"], {
    stdio: "ignore",
    env: { ...process.env, ...environment },
  });
  children.push(child);
  await once(child, "spawn");
  return child.pid!;
}

/** Two ranks in an all-reduce that the second never joins. */
async function hangingJob(environment: Record<string, string> = {}): Promise<TestRing[]> {
  const rings: TestRing[] = [];
  for (const rank of [0, 1]) {
    const pid = await idle(environment);
    const ring = new TestRing({ folder: dir, rank, pid, job: "llama", worldSize: 2, records: 256 });
    ring.communicator(0, "dp", 2);
    const begun = agoNs(120_000);
    for (let i = 1; i <= 20; i++) {
      const issuedNs = begun + BigInt(i) * 10_000_000n;
      const times = { issuedNs, startedNs: issuedNs, endedNs: issuedNs + 1_000_000n, flags: 3 };
      ring.append({ kind: KIND.collective, func: 1, group: 0, a: 1024, b: i, ...times });
    }
    const last = { issuedNs: begun + 300_000_000n, startedNs: begun + 300_000_000n, flags: 1 };
    if (rank === 0)
      ring.append({ kind: KIND.collective, func: 1, group: 0, a: 1024, b: 21, ...last });
    rings.push(ring);
  }
  return rings;
}

describe("faultline agent", () => {
  it("lists rings", async () => {
    await hangingJob();
    const { runs } = (await asked("rings")) as { runs: { rings: Record<string, unknown>[] }[] };
    expect(runs[0]!.rings).toMatchObject([
      {
        rank: 0,
        state: "alive",
        records: 21,
        last: { what: "AllReduce 21 of dp (size 2)", open: true },
      },
      { rank: 1, state: "alive", records: 20, last: { open: false } },
    ]);
    const { stdout } = await agent("rings");
    expect(stdout).toMatch(/^llama, since .*Z\n {2}rank +process +writer/);
    expect(stdout).toMatch(
      /0 +\d+ +native +alive +21 .*AllReduce 21 of dp \(size 2\), open for 1\d\d s/,
    );
  });

  it("dumps a hang that diagnose takes as it is", async () => {
    const [, second] = await hangingJob();
    process.kill(second!.bytes.readInt32LE(HEADER.pid), "SIGSTOP");
    const out = join(folder, "incident.tar.gz");
    const report = await asked("dump", "--out", out);
    expect(report).toMatchObject({
      schema: "faultline.dump/1",
      rings: [{ rank: 0 }, { rank: 1, state: "T" }],
    });
    expect(
      execFileSync("tar", ["-tzf", out], { encoding: "utf8" }).trim().split("\n"),
    ).toHaveLength(2);
    const { status, stdout } = await run("diagnose", out, "--json", "--quiet");
    expect(status).toBe(0);
    const verdict = JSON.parse(stdout) as { kind: string; inputs: { format: string }[] };
    expect(verdict.inputs.map(({ format }) => format)).toEqual(["probe-ring", "probe-ring"]);
    expect(verdict.kind).toBe("hang");
    expect(verdict).toMatchObject({ suspects: [{ ranks: [1] }] });
  });

  it("collects what the flight recorders write when their pipes are written", async () => {
    const pipes = join(folder, "pipe_");
    const dumps = join(folder, "nccl_trace_rank_");
    const environment = {
      TORCH_NCCL_DEBUG_INFO_PIPE_FILE: pipes,
      TORCH_NCCL_DEBUG_INFO_TEMP_FILE: dumps,
    };
    await hangingJob(environment);
    for (const rank of [0, 1]) execFileSync("mkfifo", [`${pipes}${rank}.pipe`]);
    writeFileSync(`${dumps}0`, "of an earlier request");
    // Rank 1's process is gone: nobody reads its pipe.
    const fd = openSync(`${pipes}0.pipe`, constants.O_RDONLY | constants.O_NONBLOCK);
    const reader = setInterval(() => {
      try {
        if (readSync(fd, Buffer.alloc(128)) > 0) writeFileSync(`${dumps}0`, "the dump of rank 0");
      } catch {
        // Nothing there yet.
      }
    }, 20);
    const out = join(folder, "dump");
    const report = await asked("dump", "--out", out);
    clearInterval(reader);
    closeSync(fd);
    expect(report["files"]).toEqual(["flight-recorder/nccl_trace_rank_0"]);
    expect(readFileSync(join(out, "flight-recorder/nccl_trace_rank_0"), "utf8")).toBe(
      "the dump of rank 0",
    );
    expect(report["troubles"]).toEqual([expect.stringMatching(/pipe_1\.pipe: nothing listens/)]);
  });

  it("asks RAS, as JSON and as text, past a process that is silent", async () => {
    await hangingJob();
    const json = '{"nccl_version":"2.28.9","communicators_count":0,"communicators":[]}';
    for (const [format, body] of [
      ["json", json],
      ["txt", "NCCL version 2.24.3 compiled with CUDA 12.6\n\nJob summary\n"],
    ] as const) {
      let connections = 0;
      const port = await fakeRas((socket, line) => {
        if (connections++ === 0) return;
        if (line === "CLIENT PROTOCOL 2") socket.write("SERVER PROTOCOL 2\n");
        else if (line === "SET FORMAT json")
          socket.write(format === "json" ? "OK\n" : "ERROR: Unknown command SET FORMAT json\n");
        else if (line === "VERBOSE STATUS") socket.end(body);
      });
      const out = join(folder, format);
      const report = await asked("dump", "--out", out, "--ras", `127.0.0.1:${port}`);
      expect(report["files"]).toEqual([`ras.${format}`]);
      expect(readFileSync(join(out, `ras.${format}`), "utf8")).toBe(body);
      expect(connections).toBe(4);
    }
  });

  it("keeps the rings when RAS is not there, is not RAS, or stacks do not come", async () => {
    const rings = await hangingJob();
    const pid = rings[0]!.bytes.readInt32LE(HEADER.pid);
    writeRing({ folder: dir, rank: 0, pid, job: "llama", writer: "python" });
    const port = await fakeRas((socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const out = join(folder, "a");
    const report = await asked("dump", "--out", out, "--ras", `127.0.0.1:${port}`, "--stacks");
    expect(report["troubles"]).toEqual([
      expect.stringMatching(/^RAS at 127.0.0.1:\d+: is not NCCL's RAS$/),
      expect.stringMatching(
        /^rank 0 \(process \d+\) did not write its stacks within 2 s; try py-spy/,
      ),
    ]);
    expect(readdirSync(join(out, "rings"))).toHaveLength(3);
    const gone = await asked("dump", "--out", join(folder, "b"), "--ras", "127.0.0.1:1");
    expect(gone["troubles"]).toEqual([expect.stringContaining("nothing listens there")]);
  });

  it("takes stacks and what else lies beside the rings", async () => {
    const ring = new TestRing({ folder: dir, rank: 4, pid: await idle(), writer: "python" });
    writeFileSync(`${ring.path}.validation.json`, "{}");
    writeFileSync(join(dir, "other.r1.1.python.ring.stacks"), "not ours");
    const answering = setInterval(() => {
      const bytes = readFileSync(ring.path);
      if (bytes.readUInt32LE(HEADER.stacksWanted) === 1) {
        writeFileSync(`${ring.path}.stacks`, "Thread 0x1 (most recent call first):\n");
        ring.word(HEADER.stacksAnswered, 1);
      }
    }, 10);
    const report = await asked("dump", "--out", join(folder, "out"), "--stacks");
    clearInterval(answering);
    const name = ring.path.slice(dir.length + 1);
    expect(report["files"]).toEqual([`rings/${name}.stacks`, `rings/${name}.validation.json`]);
    expect(report["troubles"]).toEqual([]);
  });

  it("holds and releases calls, and says who made none", async () => {
    const rings = await hangingJob();
    const calling = setInterval(() => {
      const bytes = readFileSync(rings[0]!.path);
      const held = bytes.readBigUInt64LE(HEADER.trapUntilNs) > 0n ? 1n : 0n;
      if (held > 0n) rings[0]!.long(HEADER.trappedCalls, 1n);
      rings[0]!.long(HEADER.trappedNow, held);
    }, 10);
    const trap = (await asked("trap", "--for", "1s")) as {
      rings: { rank: number; waited: boolean }[];
    };
    expect(trap.rings.map(({ rank, waited }) => [rank, waited])).toEqual([
      [0, true],
      [1, false],
    ]);
    clearInterval(calling);
    expect(await asked("release", "--rank", "0")).toMatchObject({ released: 1 });
    const deadline = (ring: TestRing): bigint =>
      readFileSync(ring.path).readBigUInt64LE(HEADER.trapUntilNs);
    expect(deadline(rings[0]!)).toBe(0n);
    expect(deadline(rings[1]!)).toBeGreaterThan(0n);
    expect((await agent("trap", "--for", "1h")).status).toBe(2);
  });

  it("asks for a test at one iteration of all ranks", async () => {
    const rings: TestRing[] = [];
    for (const rank of [0, 1]) {
      const ring = new TestRing({ folder: dir, rank, pid: await idle(), writer: "python" });
      for (let i = 0; i < 10 + rank; i++) ring.append({ kind: KIND.iteration, a: i });
      rings.push(ring);
    }
    const wanted: unknown[] = [];
    const answering = setInterval(() => {
      for (const ring of rings) {
        const bytes = readFileSync(ring.path);
        if (bytes.readUInt32LE(HEADER.validationWanted) !== 1) continue;
        const words = bytes.toString(
          "utf8",
          HEADER.validation,
          bytes.indexOf(0, HEADER.validation),
        );
        wanted.push(JSON.parse(words));
        writeFileSync(`${ring.path}.validation.json`, "{}");
        ring.word(HEADER.validationAnswered, 1);
        ring.word(HEADER.validationWanted, 0);
      }
    }, 10);
    const { files } = await asked("validate", "--in", "5", "--gemm", "--ring", "--mb", "8");
    clearInterval(answering);
    const test = { atIteration: 15, gemm: true, ring: true, tree: false, repeats: 3, mb: 8 };
    expect(wanted).toEqual([test, test]);
    expect(files).toHaveLength(2);
    const silent = await agent("profile", "--steps", "2", "--wait", "100ms");
    expect(silent.status).toBe(1);
    expect(silent.stderr).toMatch(/rank 0 \(process \d+\) did not profile within 0.1 s/);
    expect(readFileSync(rings[0]!.path).readUInt32LE(HEADER.profileSteps)).toBe(2);
  });

  it("watches, and dumps once when a job hangs", async () => {
    const [first] = await hangingJob();
    const out = join(folder, "incidents");
    const { status, stdout } = await agent(
      "watch",
      "--json",
      "--out",
      out,
      "--every",
      "50ms",
      "--hang",
      "1s",
      "--for",
      "6s",
    );
    expect(status).toBe(0);
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(events.map(({ event }) => event).filter((event) => event !== "trouble")).toEqual([
      "watching",
      "hang",
      "dump",
      "end",
    ]);
    expect(events.at(-1)).toMatchObject({ rings: 2, records: 41, lost: 0, incidents: 1, dumps: 1 });
    expect(readdirSync(out)).toEqual([expect.stringMatching(/^llama-hang-.*\.tar\.gz$/)]);
    first!.close();
  });

  it("ends with a line on rings that are damaged or without end", async () => {
    const ring = new TestRing({ folder: dir, pid: await idle() });
    ring.long(HEADER.head, 2n ** 64n - 1n);
    const counted = await agent("rings");
    expect(counted.status).toBe(3);
    expect(counted.stderr).toMatch(/^faultline: .*damaged header: a head of 18446744073709551615/);
    ring.long(HEADER.head, 0n);
    truncateSync(ring.path, 2 ** 40);
    const dumped = await agent("dump", "--out", join(folder, "x.tar.gz"));
    expect(dumped.status).toBe(3);
    expect(dumped.stderr).toMatch(/^faultline: .*it continues beyond the .* bytes in its header/);
    const read = await run("diagnose", ring.path);
    expect(read.status).toBe(3);
    expect(read.stderr).toMatch(/longer than the .* bytes that its header states: damaged/);
  });

  it("names a dump after a job without leaving its folder", async () => {
    for (const ring of await hangingJob()) {
      ring.bytes.write("../../job\0", HEADER.job);
      writeFileSync(ring.path, ring.bytes);
    }
    const out = join(folder, "incidents");
    await agent("watch", "--out", out, "--every", "50ms", "--hang", "1s", "--for", "5s");
    expect(readdirSync(out)).toEqual([expect.stringMatching(/^______job-hang-.*\.tar\.gz$/)]);
  });

  it("says in its help that watch prints a document a line", async () => {
    const help = async (command: string): Promise<string> =>
      (await run("agent", command, "--help")).stdout.replace(/\s+/g, " ");
    expect(await help("watch")).toContain(
      "one JSON document per line on stdout, one for each incident",
    );
    expect(await help("rings")).toContain("one JSON document on stdout, nothing else");
  });

  it("says in one line what is wrong, and what to do", async () => {
    const empty = await agent("rings");
    expect(empty.status).toBe(3);
    expect(empty.stderr).toMatch(
      /^faultline: .*no ring can be read there; start the job with the probe.*\n$/,
    );
    const missing = await run("agent", "rings", "--dir", join(folder, "none"));
    expect(missing.status).toBe(3);
    expect(missing.stderr).toMatch(/^faultline: .*there is no such folder.*\n$/);
    writeRing({ folder: dir }).word(HEADER.version, 2);
    expect((await agent("rings")).stderr).toContain("a ring of version 2");
    const dumped = await agent("dump", "--out", join(folder, "x.tar.gz"));
    expect(dumped.status).toBe(3);
    writeRing({ folder: dir, job: "a", pid: await idle() });
    writeRing({ folder: dir, job: "b", pid: await idle() });
    const two = await agent("dump", "--out", join(folder, "y.tar.gz"));
    expect(two.status).toBe(2);
    expect(two.stderr).toMatch(/2 jobs here: .*; choose one with --job NAME or --pid N\n$/);
    writeFileSync(join(folder, "full"), "");
    const onFile = await agent("dump", "--job", "a", "--out", join(folder, "full"));
    expect(onFile.status).toBe(2);
    expect((await agent("stacks", "--job", "a", "--rank", "9")).stderr).toContain(
      "no live process",
    );
    expect((await agent("profile", "--job", "a", "--steps", "1")).stderr).toContain(
      "no ring of the Python probe",
    );
  });

  it.skipIf(process.getuid?.() === 0)("says that another user's ring may not be read", async () => {
    const ring = new TestRing({ folder: dir });
    chmodSync(ring.path, 0);
    expect((await agent("rings")).stderr).toContain("run as the job's user or as root");
  });
});

/** A server that is handed each line that a client sends. */
async function fakeRas(answer: (socket: Socket, line: string) => void): Promise<number> {
  const server = createServer((socket) => {
    let text = "";
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      const lines = (text + chunk.toString()).split("\n");
      text = lines.pop()!;
      for (const line of lines) answer(socket, line);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
