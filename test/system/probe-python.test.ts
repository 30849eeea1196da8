/** The Python probe: its ring is the one of probe/RING.md, and a job behaves as it does without it. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { describe, expect, it } from "vitest";
import * as layout from "../../src/ingest/probe-ring/layout.ts";
import {
  byEnvironment,
  callWords,
  newFolder,
  onlyRing,
  PACKAGE,
  program,
  python,
  pythonOfTorch,
  ringFiles,
  run,
  SITE,
  start,
  whyNoPython,
} from "./probe-python/run.ts";
import { freePort } from "../support/free-port.ts";
import { unlessThere } from "../support/lacking.ts";

const RUN = ["-m", "faultline_probe"];

describe.skipIf(python === undefined)(`the layout${whyNoPython}`, () => {
  it("is the same in Python and in TypeScript", () => {
    const names =
      `HEADER_BYTES RECORD_BYTES COMM_BYTES CONNECTION_BYTES NAME_BYTES COMMS CONNECTIONS NAMES WORDS_BYTES
      WRITER_PYTHON NO_NAME PYTHON_CALL GARBAGE_COLLECTION ITERATION MEMORY FAILED HEAD DROPPED LATE_UPDATES NAMES_IN_USE
      TABLES_FULL RANK WORLD_SIZE GPU ANCHOR LIBRARY SOURCE HEARTBEAT ENDED ENDED_NS WORDS_LENGTH STACKS_WANTED
      STACKS_ANSWERED PROFILE_WANTED PROFILE_STEPS PROFILE_ANSWERED VALIDATION_WANTED VALIDATION_ANSWERED VALIDATION
      VALIDATION_BYTES PHASE_SINCE PHASE PHASE_BYTES`.split(/\s+/);
    const code = `import json; from faultline_probe import ring; print(json.dumps([getattr(ring, n) for n in ${JSON.stringify(names)}]))`;
    const { stdout } = spawnSync(python!, ["-c", code], {
      encoding: "utf8",
      env: { ...process.env, PYTHONPATH: PACKAGE, PYTHONDONTWRITEBYTECODE: "1" },
    });
    const { HEADER, KIND, FLAG, TEXT_BYTES } = layout;
    expect(JSON.parse(stdout)).toEqual([
      layout.HEADER_BYTES,
      layout.RECORD_BYTES,
      layout.COMMUNICATOR_BYTES,
      layout.CONNECTION_BYTES,
      layout.NAME_BYTES,
      layout.COMMUNICATOR_CAPACITY,
      layout.CONNECTION_CAPACITY,
      layout.NAME_CAPACITY,
      layout.WORDS_BYTES,
      layout.PYTHON_WRITER,
      layout.NONE,
      KIND.pythonCall,
      KIND.collection,
      KIND.iteration,
      KIND.memory,
      FLAG.failed,
      HEADER.head,
      HEADER.dropped,
      HEADER.lateUpdates,
      HEADER.nameCount,
      HEADER.tablesFull,
      HEADER.rank,
      HEADER.worldSize,
      HEADER.gpu,
      HEADER.anchorRealtimeNs,
      HEADER.library,
      HEADER.source,
      HEADER.heartbeatNs,
      HEADER.endedHow,
      HEADER.endedNs,
      HEADER.wordsLength,
      HEADER.stacksWanted,
      HEADER.stacksAnswered,
      HEADER.profileWanted,
      HEADER.profileSteps,
      HEADER.profileAnswered,
      HEADER.validationWanted,
      HEADER.validationAnswered,
      HEADER.validation,
      TEXT_BYTES.validation,
      HEADER.phaseSinceNs,
      HEADER.phase,
      TEXT_BYTES.phase,
    ]);
  });

  it("says in the header who the process is", async () => {
    const rings = newFolder();
    const who = {
      RANK: "3",
      WORLD_SIZE: "8",
      LOCAL_RANK: "1",
      FAULTLINE_JOB: "llama 7b/ä",
      MASTER_ADDR: "10.0.0.1",
      MASTER_PORT: "29500",
      NCCL_HOSTID: "node-7",
    };
    const { child } = await run([program("pass")], byEnvironment(rings, who));
    const ring = onlyRing(rings);
    expect(basename(ring.file)).toBe(`llama_7b__.r3.${child.pid}.python.ring`);
    expect(ring).toMatchObject({ rank: 3, worldSize: 8, host: "node-7", writer: "python" });
    expect(ring).toMatchObject({ pid: child.pid, job: "llama_7b__ 10.0.0.1:29500", dropped: 0 });
    expect(ring.library).toMatch(/^Python 3\.\d+/);
    expect(Math.abs(Number(ring.epochNs) / 1e6 + ring.startedNs / 1e6 - Date.now())).toBeLessThan(
      600_000,
    );
    expect(statSync(ring.file).mode & 0o777).toBe(0o600);
  });
});

describe.skipIf(python === undefined)(`phases of a job${whyNoPython}`, () => {
  it.each([
    [["checkpoint", "evaluation"], 1, "checkpoint"],
    [["checkpoint", "evaluation"], 2, null],
    [["x".repeat(100)], 0, "x".repeat(55)],
  ] as const)("of %j, %i left", async (entered, left, expected) => {
    const rings = newFolder();
    const lines = [
      "import faultline_probe",
      `phases = [faultline_probe.phase(name) for name in ${JSON.stringify(entered)}]`,
      "for one in phases: one.__enter__()",
      `for one in phases[len(phases) - ${left}:]: one.__exit__(None, None, None)`,
    ];
    await run([program(...lines)], byEnvironment(rings, { RANK: "0", WORLD_SIZE: "1" }));
    const header = readFileSync(onlyRing(rings).file);
    const { HEADER, TEXT_BYTES } = layout;
    const isIn = header.readBigUInt64LE(HEADER.phaseSinceNs) > 0n;
    const text = header.toString("utf8", HEADER.phase, HEADER.phase + TEXT_BYTES.phase);
    expect(isIn ? text.replace(/\0.*$/, "") : null).toBe(expected);
  });

  it("does nothing without a probe, and hides no exception", () => {
    const code =
      "import faultline_probe\ntry:\n  with faultline_probe.phase('checkpoint'): 1 / 0\nexcept ZeroDivisionError: print('raised')";
    const env = { ...process.env, PYTHONPATH: PACKAGE, PYTHONDONTWRITEBYTECODE: "1" };
    const { stdout, stderr } = spawnSync(python!, ["-c", code], { encoding: "utf8", env });
    expect([stdout.trim(), stderr]).toEqual(["raised", ""]);
  });
});

describe.skipIf(python === undefined)(`a program under the probe${whyNoPython}`, () => {
  const shows = program(
    "import sys, os",
    `own = {${JSON.stringify(SITE)}, ${JSON.stringify(PACKAGE)}}`,
    "print(sys.argv, [p for p in sys.path if p not in own], __name__, __file__, __doc__, __spec__ and __spec__.name)",
    "print(sorted(k for k in globals() if k != '__builtins__'))",
    "print(sys.flags, sys.stdout.write_through)",
    "def fail(): raise KeyError('its own')",
    "if sys.argv[1:] == ['raise']: fail()",
    "if sys.argv[1:2] == ['exit']: sys.exit(int(sys.argv[2]))",
    "if sys.argv[1:] == ['words']: sys.exit('last words')",
  );
  it.each([
    [[shows]],
    [[shows, "a", "--b", "-c"]],
    [["-u", "-O", "-W", "error", shows]],
    [[shows, "raise"]],
    [[shows, "exit", "7"]],
    [[shows, "words"]],
    [["-c", "import sys; print(sys.argv, __name__); sys.exit(5)", "x"]],
    [["-m", "json.tool", "--help"]],
    [["/nonexistent/train.py"]],
  ])("sees, prints and returns what it does without: %j", async (words) => {
    const alone = start(python!, words, {});
    const at = words.findIndex((word) => !/^-[uOW]$|^error$/.test(word));
    const probed = start(python!, [...words.slice(0, at), ...RUN, ...words.slice(at)], {
      FAULTLINE_DIR: newFolder(),
    });
    expect(await probed.ended).toEqual(await alone.ended);
    expect([probed.out(), probed.err()]).toEqual([alone.out(), alone.err()]);
  });

  it("says what is wrong with the command line", async () => {
    for (const words of [[], ["--bogus"], ["--trace"]]) {
      const { err, out, ended } = await run([...RUN, ...words], {});
      expect((await ended)[0]).not.toBe(0);
      expect(out() + err()).toMatch(/faultline_probe/);
    }
  });

  it("still runs the sitecustomize that it would have had, and shows its error", async () => {
    const [other, rings] = [newFolder(), newFolder()];
    writeFileSync(join(other, "sitecustomize.py"), "print('site of the cluster')\nhere = 1\n");
    const code = program("import sitecustomize", "print(sitecustomize.here)");
    const path = [SITE, PACKAGE, other].join(delimiter);
    const one = await run([code], byEnvironment(rings, { RANK: "0", PYTHONPATH: path }));
    expect([one.out(), one.err()]).toEqual(["site of the cluster\n1\n", ""]);
    expect(ringFiles(rings)).toHaveLength(1);
    writeFileSync(join(other, "sitecustomize.py"), "1 / 0\n");
    const two = await run([program("print('runs')")], byEnvironment(rings, { PYTHONPATH: path }));
    expect(two.out()).toBe("runs\n");
    expect(two.err()).toMatch(/Error in sitecustomize/);
  });

  it("goes on without a ring where none can be made, and says so in one line", async () => {
    const file = join(newFolder(), "file");
    writeFileSync(file, "");
    const link = join(newFolder(), "link");
    symlinkSync(newFolder(), link);
    const open = newFolder();
    chmodSync(open, 0o777);
    const code = program("import faultline_probe", "faultline_probe.iteration()", "print('runs')");
    for (const [folder, why] of [
      [file, "is a link or no folder"],
      [link, "is a link or no folder"],
      [open, "others may write into the folder"],
      ["/proc/nowhere", "No such file|Permission|not permitted"],
    ] as const) {
      const { ended, out, err } = await run([code], byEnvironment(folder, { RANK: "1" }));
      expect([await ended, out()]).toEqual([[0, null], "runs\n"]);
      expect(err()).toMatch(new RegExp(`^faultline: .*(${why}).*goes on without the probe\n$`));
    }
  });

  it("goes on where the disk is full, and leaves no half a ring", async () => {
    const rings = newFolder();
    const code = program("print('runs')");
    // The limit on a file's size answers as a full disk does: at the allocation.
    const job = start("sh", ["-c", `ulimit -f 64; exec "$0" "$1"`, python!, code], {
      ...byEnvironment(rings, { RANK: "1" }),
    });
    expect([await job.ended, job.out()]).toEqual([[0, null], "runs\n"]);
    expect(job.err()).toMatch(/^faultline: .*goes on without the probe\n$/);
    expect(ringFiles(rings)).toEqual([]);
  });

  it("is left alone where it is switched off", async () => {
    const rings = newFolder();
    const code = program("import sys", "print('faultline_probe.probe' in sys.modules)");
    for (const off of [{ FAULTLINE: "0" }, { FAULTLINE_PROBE: "0" }])
      expect((await run([code], byEnvironment(rings, { RANK: "0", ...off }))).out()).toBe(
        "False\n",
      );
    expect(ringFiles(rings)).toEqual([]);
  });

  it("is traced as far as the words make sense", async () => {
    const rings = newFolder();
    const trace = "gc,,@, no sense ,json@dumps,a@b@c,1@2";
    const code = program("import json", "json.dumps(1)", "print('runs')");
    const job = await run([code], byEnvironment(rings, { RANK: "0", FAULTLINE_TRACE: trace }));
    expect([await job.ended, job.out()]).toEqual([[0, null], "runs\n"]);
    expect(job.err()).toBe(
      "faultline: FAULTLINE_TRACE: not traced: @, no sense, a@b@c, 1@2 (wanted: module@function, gc or default)\n",
    );
    expect(callWords(onlyRing(rings).calls)).toEqual(["dumps:0"]);
  });
});

const whyNoTorch = unlessThere(pythonOfTorch !== null, "PyTorch", "python3-torch");
describe.skipIf(pythonOfTorch === null)(`the tests of links without a job${whyNoTorch}`, () => {
  it.each([
    ["0", /^rank 0: not all 3 ranks came within 3 s; missing: 1, 2$/],
    ["2", /^rank 2: no meeting at 127.0.0.1:\d+ within 3 s: rank 0 is missing \(.*\)$/],
  ])("end at their limit where others do not come, as rank %s sees it", async (rank, line) => {
    const port = String(await freePort());
    const words = ["-m", "faultline_probe.validate_main", "--limit", "3", "--out", newFolder()];
    const where = { RANK: rank, WORLD_SIZE: "3", MASTER_ADDR: "127.0.0.1", MASTER_PORT: port };
    const job = start(pythonOfTorch!, words, where);
    expect(await job.ended).toEqual([1, null]);
    expect(job.err().trimEnd().split("\n").at(-1)).toMatch(line);
  });
});

describe.skipIf(python === undefined)(`what lies around${whyNoPython}`, () => {
  it("is swept: old rings of dead processes of the same job and rank, and nothing else", async () => {
    const rings = newFolder();
    const [old, other, young] = [
      "job.r0.999999.python.ring",
      "job.r1.999999.python.ring",
      "job.r0.999998.python.ring",
    ];
    for (const name of [old, other, young]) writeFileSync(join(rings, name), "x");
    const dayAgo =
      "import os, sys, time; [os.utime(f, (time.time() - 90000,) * 2) for f in sys.argv[1:]]";
    spawnSync(python!, ["-c", dayAgo, join(rings, old), join(rings, other)]);
    await run([program("pass")], byEnvironment(rings, { RANK: "0" }));
    expect([old, other, young].map((name) => existsSync(join(rings, name)))).toEqual([
      false,
      true,
      true,
    ]);
  });
});
