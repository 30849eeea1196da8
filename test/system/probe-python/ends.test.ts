/** How a process ended, and where its threads stood. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { HEADER } from "../../../src/ingest/probe-ring/layout.ts";
import { pythonStacks } from "../../../src/ingest/python-stacks.ts";
import { readBytes } from "../../support/ingest/reader-contract.ts";
import {
  byEnvironment,
  callWords,
  get,
  LIBRARIES,
  library,
  newFolder,
  onlyRing,
  program,
  put,
  python,
  ringFiles,
  ringOf,
  run,
  start,
  whyNoCompiler,
  whyNoPython,
} from "./run.ts";
import { until } from "../../support/until.ts";

describe.skipIf(python === undefined)(`how it ended${whyNoPython}`, () => {
  const SELF = "import os, signal, sys, threading, time, atexit";
  async function end(...lines: string[]) {
    const rings = newFolder();
    const job = await run([program(SELF, ...lines)], byEnvironment(rings, { RANK: "0" }));
    return { job, ended: await job.ended, ring: onlyRing(rings) };
  }

  it("by an exception: its traceback, and none of our frames in it", async () => {
    const { ring, job, ended } = await end(
      "def forward(): raise ValueError('ünknown')",
      "forward()",
    );
    expect(ended).toEqual([1, null]);
    expect(ring.ended).toMatchObject({ how: "exception", code: 1 });
    expect(ring.words).toMatch(/^Traceback .*line 2, in forward\n.*ValueError: ünknown\n$/s);
    expect(job.err()).toBe(ring.words);
    expect(ring.words).not.toMatch(/faultline_probe/);
  });

  it("by an exception where the job has a hook of its own", async () => {
    const hook = "sys.excepthook = lambda *_: print('mine')";
    const { ring, job } = await end(hook, "raise ValueError('x')");
    expect(job.out()).toBe("mine\n");
    expect(ring.ended?.how).toBe("exception");
    expect(ring.words).toMatch(/ValueError: x/);
  });

  it("by an exception, whatever a thread's was before", async () => {
    const { ring } = await end(
      "def loads(): raise OSError('of a thread')",
      "thread = threading.Thread(target=loads); thread.start(); thread.join()",
      "raise ValueError('of the job')",
    );
    expect(ring.words).toMatch(/^Traceback.*of the job.*Exception in thread.*of a thread/s);
    const lone = await end(
      "def loads(): raise OSError('of a thread')",
      "thread = threading.Thread(target=loads); thread.start(); thread.join()",
    );
    expect(lone.ring).toMatchObject({ ended: { how: "exit", code: 0 } });
    expect(lone.ring.words).toMatch(/of a thread/);
  });

  it("by Ctrl-C", async () => {
    const { ring, ended } = await end("os.kill(os.getpid(), signal.SIGINT)", "time.sleep(60)");
    expect(ended).toEqual([null, "SIGINT"]);
    expect(ring.ended).toMatchObject({ how: "exception", code: 130 });
    expect(ring.words).toMatch(/KeyboardInterrupt/);
  });

  it("in order", async () => {
    const { ring, ended } = await end("atexit.register(lambda: print('bye'))");
    expect(ended).toEqual([0, null]);
    expect(ring.ended).toMatchObject({ how: "exit", code: 0 });
    expect(ring.words).toBe("");
    expect(existsSync(`${ring.file}.stacks`)).toBe(false);
  });

  it("by kill -9: the ring stays, and is readable", async () => {
    const rings = newFolder();
    const code = program(
      SELF,
      "import faultline_probe, json",
      "class Slow: pass",
      "def stay(_): print('there', flush=True); time.sleep(600)",
      "faultline_probe.iteration()",
      "json.dumps(Slow(), default=stay)",
    );
    const job = start(
      python!,
      [code],
      byEnvironment(rings, { RANK: "0", FAULTLINE_TRACE: "json@dumps" }),
    );
    await until(() => job.out() === "there\n", job.err);
    job.child.kill("SIGKILL");
    expect(await job.ended).toEqual([null, "SIGKILL"]);
    const ring = onlyRing(rings);
    expect(ring.ended).toBeNull();
    expect(callWords(ring.calls)).toEqual(["#1", "dumps:0…"]);
  });

  describe.skipIf(library === null)(`as C sees it${whyNoCompiler}`, () => {
    it("by sys.exit, with its code", async () => {
      const { ring, ended } = await end("sys.exit(42)");
      expect(ended).toEqual([42, null]);
      expect(ring.ended).toMatchObject({ how: "exit", code: 42 });
    });

    it.each(["SIGTERM", "SIGABRT", "SIGSEGV"])("by %s", async (name) => {
      const { ring, ended } = await end(`os.kill(os.getpid(), signal.${name})`, "time.sleep(60)");
      expect(ended).toEqual([null, name]);
      expect(ring.ended?.how).toBe("signal");
      expect(ring.words).toBe(name);
      // Python's own stacks of a crash lie beside it.
      if (name !== "SIGTERM")
        expect(readFileSync(`${ring.file}.stacks`, "utf8")).toMatch(/^Fatal Python error/);
    });

    it("by Ctrl-C that comes while the probe itself runs", async () => {
      const { ring, ended } = await end(
        "import faultline_probe",
        "class Interrupted(dict):",
        "    def __bool__(self):",
        // The probe's own thread comes by, too.
        "        if threading.current_thread() is not threading.main_thread(): return False",
        "        faultline_probe._probe._pending = {}; raise KeyboardInterrupt",
        "faultline_probe._probe._pending = Interrupted()",
        // The hook looks at it after the import.
        "import wave",
        "for _ in range(10**8): pass",
      );
      expect(ended).toEqual([null, "SIGINT"]);
      expect(ring.words).toMatch(/KeyboardInterrupt/);
    });

    it("leaves signals to a job that handles them", async () => {
      const { ring, job, ended } = await end(
        "def handle(*_): print('saved'); sys.exit(3)",
        "signal.signal(signal.SIGTERM, handle)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "time.sleep(60)",
      );
      expect([ended, job.out()]).toEqual([[3, null], "saved\n"]);
      expect(ring.ended).toMatchObject({ how: "exit", code: 3 });
    });
  });
});

describe.skipIf(python === undefined)(`what is the job's stays the job's${whyNoPython}`, () => {
  /** Closes all descriptors, as daemons do, and opens files of its own in their place. */
  const REUSES = [
    "import glob, os, sys, time, faulthandler, itertools, json, faultline_probe",
    "json.dumps(1)",
    "folder, most = sys.argv[1], int(sys.argv[2])",
    "os.closerange(3, 4096)",
    "mine = []",
    "while not mine or mine[-1] < most:",
    "    mine.append(os.open(f'{folder}/{len(mine)}', os.O_RDWR | os.O_CREAT))",
    "    os.write(mine[-1], b'x' * 1000)",
    "def untouched(): return all(os.fstat(file).st_size == 1000 for file in mine)",
  ];
  const variables = { RANK: "0", FAULTLINE_TRACE: "json@dumps" };

  it.each(LIBRARIES)("files in the place of the probe's, %s", async (_, so) => {
    const code = program(
      ...REUSES,
      "time.sleep(4.5)",
      // A stop, and that it is over: stacks are written, and taken back.
      "for _ in range(3): json.dumps(1); time.sleep(0.3)",
      "if os.fork() == 0: os._exit(0 if untouched() else 3)",
      "print(untouched(), os.wait()[1], flush=True)",
      "os.abort()",
    );
    const job = await run([code, newFolder(), "1100"], {
      // Seconds, not less: faulthandler's timer, which nothing can stop any more, has the old descriptor until the probe's
      // thread comes by, and that may take a while on a busy machine.
      ...byEnvironment(newFolder(), { ...variables, FAULTLINE_HANG_S: "3" }),
      FAULTLINE_LIBRARY: so,
    });
    expect([job.out(), await job.ended]).toEqual(["True 0\n", [null, "SIGABRT"]]);
    const [files] = [newFolder()];
    const crash = await run(
      [program(...REUSES, "time.sleep(1.5)", "os.abort()"), files, "1100"],
      byEnvironment(newFolder(), { ...variables, FAULTLINE_LIBRARY: so }),
    );
    expect(await crash.ended).toEqual([null, "SIGABRT"]);
    const sizes = readdirSync(files).map((name) => statSync(join(files, name)).size);
    expect(new Set(sizes)).toEqual(new Set([1000]));
  });

  it("and stacks still come to their own file", async () => {
    const rings = newFolder();
    const code = program(...REUSES, "time.sleep(1.5)", "print('there', flush=True)", "os.abort()");
    await run([code, newFolder(), "1100"], byEnvironment(rings, variables));
    const stacks = readFileSync(`${ringFiles(rings)[0]!}.stacks`, "utf8");
    expect(stacks).toMatch(/^Fatal Python error: Aborted/);
  });

  it("faulthandler, once the job has enabled it itself", async () => {
    const code = program(
      "import faulthandler, os, sys",
      "faulthandler.enable(sys.stdout)",
      "if os.fork() == 0: os._exit(0 if faulthandler.is_enabled() else 3)",
      "print(os.wait()[1], flush=True)",
    );
    expect((await run([code], byEnvironment(newFolder(), { RANK: "0" }))).out()).toBe("0\n");
  });

  it.each(["python.ring", "python.ring.stacks"])("time, where a pipe is %s", async (name) => {
    const rings = newFolder();
    const script = `mkfifo "$FAULTLINE_DIR/job.r0.$$.${name}"; exec "$0" -c "print('runs')"`;
    const job = start("timeout", ["20", "sh", "-c", script, python!], {
      ...byEnvironment(rings, { RANK: "0" }),
    });
    expect([await job.ended, job.out()]).toEqual([[0, null], "runs\n"]);
  });

  it.skipIf(library === null)(`life, where the ring is truncated${whyNoCompiler}`, async () => {
    const code = program(
      "import glob, os, sys, time, faultline_probe",
      "faultline_probe.iteration()",
      "ring, = glob.glob(os.environ['FAULTLINE_DIR'] + '/*.ring')",
      "for size in 4096, 100, 0, 100000:",
      "    os.truncate(ring, size)",
      "    time.sleep(1.2)",
      "    for _ in range(20000): faultline_probe.iteration()",
      "print('lives', flush=True)",
      "os.kill(os.getpid(), 7)",
    );
    const job = await run([code], byEnvironment(newFolder(), { RANK: "0" }));
    expect([job.out(), await job.ended]).toEqual(["lives\n", [null, "SIGBUS"]]);
  });

  it("output, where a collection cannot be noted", async () => {
    const code = program(
      "import gc, time, faultline_probe",
      "def broken(*_): raise OSError('of the job')",
      "faultline_probe._probe.append = broken",
      "keep = [[] for _ in range(10**6)]",
      "for _ in range(3): gc.collect()",
      "print('runs')",
    );
    const job = await run([code], byEnvironment(newFolder(), { RANK: "0" }));
    expect(job.out()).toBe("runs\n");
    expect(job.err()).toBe("faultline: collections are no longer noted: OSError: of the job\n");
  });
});

describe.skipIf(python === undefined)(`stacks${whyNoPython}`, () => {
  const WAITS = [
    "import sys, threading, time",
    "def loader(): time.sleep(600)",
    "def forward(): print('there', flush=True); time.sleep(600)",
    "threading.Thread(target=loader, name='loader [1]', daemon=True).start()",
    "time.sleep(0.1)",
    "forward()",
  ];

  it("of all threads come on request, each time", async () => {
    const rings = newFolder();
    const job = start(python!, [program(...WAITS)], byEnvironment(rings, { RANK: "5" }));
    await until(() => job.out() === "there\n", job.err);
    const file = ringFiles(rings)[0]!;
    for (const request of [1, 2]) {
      put(file, HEADER.stacksWanted, request);
      await until(() => get(file, HEADER.stacksAnswered) === request, job.err);
    }
    const text = readFileSync(`${file}.stacks`);
    expect(text.toString()).toMatch(new RegExp(`^Timeout \\(rank 5, pid ${job.child.pid}, \\d+`));
    const reading = readBytes(pythonStacks, `${file}.stacks`, text.toString());
    expect(reading).toMatchObject({ rank: 5, defects: [] });
    const threads = reading.stacks![0]!.threads;
    expect(threads.map(({ name, isMain }) => [name, isMain])).toEqual([
      ["loader 1", false],
      ["MainThread", true],
    ]);
    expect(threads[1]!.frames.map(({ func }) => func)).toEqual(["forward", "<module>"]);
  });

  it("come once where nothing moves any more", async () => {
    const rings = newFolder();
    const lines = [...WAITS.slice(0, -1), "import json; json.dumps(1)", "forward()"];
    const variables = { RANK: "0", FAULTLINE_HANG_S: "0.5", FAULTLINE_TRACE: "json@dumps" };
    const job = start(python!, [program(...lines)], byEnvironment(rings, variables));
    const stacks = (): string => {
      const [file] = ringFiles(rings);
      return file && existsSync(`${file}.stacks`) ? readFileSync(`${file}.stacks`, "utf8") : "";
    };
    await until(() => stacks().includes("forward"), job.err);
    // Another look of the probe's thread, known by its heartbeat.
    const before = ringOf(ringFiles(rings)[0]!).heartbeatNs;
    await until(() => ringOf(ringFiles(rings)[0]!).heartbeatNs > before + 1e9, job.err);
    expect(stacks().match(/^Timeout \(rank/gm)).toHaveLength(1);
  });

  it("are taken back where the job moves on", async () => {
    const rings = newFolder();
    const go = join(newFolder(), "go");
    const lines = [
      "import json, os, time",
      "json.dumps(1)",
      `while not os.path.exists(${JSON.stringify(go)}): time.sleep(0.02)`,
      "json.dumps(2)",
      "print('moves', flush=True)",
      "time.sleep(600)",
    ];
    const variables = { RANK: "0", FAULTLINE_HANG_S: "2", FAULTLINE_TRACE: "json@dumps" };
    const job = start(python!, [program(...lines)], byEnvironment(rings, variables));
    const size = (): number => {
      const [file] = ringFiles(rings);
      return file && existsSync(`${file}.stacks`) ? statSync(`${file}.stacks`).size : 0;
    };
    await until(() => size() > 0, job.err);
    writeFileSync(go, "");
    await until(() => job.out() === "moves\n" && size() === 0, job.err);
  });

  it("come from faulthandler's timer where a thread never lets Python go, unless the job uses it", async () => {
    const stuck = [
      "import faulthandler, itertools, json, sys, time",
      "if 'own' in sys.argv: faulthandler.dump_traceback_later(600)",
      "json.dumps(1)",
      "time.sleep(2.5)",
      "print('there', flush=True)",
      "sum(itertools.repeat(0, 10**12))",
    ];
    const variables = { RANK: "0", FAULTLINE_HANG_S: "2", FAULTLINE_TRACE: "json@dumps" };
    const rings = newFolder();
    const job = start(python!, [program(...stuck)], byEnvironment(rings, variables));
    await until(() => job.out() === "there\n", job.err);
    const stacks = `${ringFiles(rings)[0]!}.stacks`;
    const timer = /^Timeout \(0:00:02/m;
    await until(() => timer.test(readFileSync(stacks, "utf8")), job.err);
    const [dump] = readBytes(pythonStacks, stacks, readFileSync(stacks, "utf8")).stacks!;
    expect(dump!.threads.find(({ isMain }) => isMain)!.frames[0]).toMatchObject({ line: 6 });

    const others = newFolder();
    const own = start(python!, [program(...stuck), "own"], byEnvironment(others, variables));
    await until(() => own.out() === "there\n", own.err);
    job.child.kill("SIGKILL");
    const ring = ringFiles(others)[0]!;
    const beat = ringOf(ring).heartbeatNs;
    expect(beat).toBeGreaterThan(0);
    await pause(3000);
    expect(readFileSync(`${ring}.stacks`, "utf8")).not.toMatch(timer);
  });
});
