/** Which calls are recorded, by which Python, and in which process' ring. */
import { readFileSync } from "node:fs";
import { delimiter } from "node:path";
import { describe, expect, it } from "vitest";
import { HEADER } from "../../../src/ingest/probe-ring/layout.ts";
import { COLLECTION } from "../../../src/model/probe.ts";
import {
  byEnvironment,
  callWords,
  LIBRARIES,
  newFolder,
  onlyRing,
  PACKAGE,
  program,
  python,
  pythons,
  ringFiles,
  ringOf,
  run,
  script,
  SITE,
  start,
  whyNoPython,
} from "./run.ts";

const RUN = ["-m", "faultline_probe"];

const TRACED =
  `plain outer recursive failing through counting decorated Thing.method Thing.static Thing.of_class`
    .split(" ")
    .map((name) => `traced_work@${name}`);

describe.skipIf(python === undefined)(`traced calls${whyNoPython}`, () => {
  const ways = LIBRARIES.flatMap(([how, file]) =>
    pythons.map((each) => [each, how, file] as const),
  );
  it.each(ways)("are recorded by %s %s", async (each, how, file) => {
    const rings = newFolder();
    const trace = [...TRACED, "gc", "re@nonsense"].join();
    const variables = { FAULTLINE_DIR: rings, FAULTLINE_LIBRARY: file };
    const job = start(each, [...RUN, "--trace", trace, script("calls.py")], variables);
    expect(await job.ended).toEqual([0, null]);
    expect(job.out()).toMatch(/^done/);
    // A name that is not there is said once, and the job goes on.
    expect(job.err()).toBe(
      "faultline: FAULTLINE_TRACE: re@nonsense is no function written in Python; it is not traced\n",
    );
    const { calls } = onlyRing(rings);
    expect(callWords(calls)).toEqual([
      // The first iteration begins with the ring, and others where the one before ended.
      "#1",
      "plain:0",
      "outer:0",
      "plain:1",
      "recursive:0",
      "recursive:1",
      "recursive:2",
      "recursive:3",
      "failing:0",
      "through:0",
      "failing:1",
      "counting:0",
      "counting:0",
      "counting:0",
      "decorated:0",
      "Thing.method:0",
      "Thing.static:0",
      "Thing.of_class:0",
      "plain:0",
      "#2",
      "#3",
      "#41",
      "#42",
    ]);
    const collections = [...calls.kind.keys()].filter((i) => calls.kind[i] === COLLECTION);
    expect(collections.map((i) => calls.detail[i])).toContain(2);
    for (let i = 0; i < calls.count; i++)
      expect(calls.endNs[i]!).toBeGreaterThan(calls.startNs[i]!);
    // The last call of plain is another thread's.
    const threads = new Set(calls.thread.filter((thread) => thread > 0));
    expect(threads.size).toBe(2);
    expect(how).toBeDefined();
  });

  it.each(LIBRARIES)("go round in a small ring, %s", async (_how, file) => {
    const rings = newFolder();
    const code = program(
      "import threading, traced_work",
      "def many():",
      "    for n in range(5000): traced_work.outer(n)",
      "threads = [threading.Thread(target=many) for _ in range(4)]",
      "[thread.start() for thread in threads]",
      "[thread.join() for thread in threads]",
    );
    const variables = { FAULTLINE_RECORDS: "100", FAULTLINE_LIBRARY: file };
    const path = [SITE, PACKAGE, script("")].join(delimiter);
    await run(
      [code],
      byEnvironment(rings, {
        ...variables,
        FAULTLINE_TRACE: TRACED.join(),
        RANK: "0",
        PYTHONPATH: path,
      }),
    );
    const bytes = readFileSync(ringFiles(rings)[0]!);
    expect(bytes.readUInt32LE(HEADER.recordCount)).toBe(128);
    expect(Number(bytes.readBigUInt64LE(HEADER.head))).toBe(40_000);
    const { calls } = onlyRing(rings);
    // Whoever is overtaken by a whole lap in the middle of its own record leaves it unfinished or drops it.
    expect(calls.count).toBeGreaterThan(100);
    expect(new Set(calls.names)).toEqual(new Set(TRACED));
  });
});

describe.skipIf(python === undefined)(`other processes of a job${whyNoPython}`, () => {
  const TRACE = { RANK: "2", FAULTLINE_TRACE: "json@dumps" };

  it("have no ring of the rank's: what a trainer starts inherits its environment", async () => {
    const rings = newFolder();
    const code = program(
      "import subprocess, sys, multiprocessing, json",
      "def work(): pass",
      "if __name__ == '__main__':",
      "    json.dumps(1)",
      "    subprocess.run([sys.executable, '-c', 'print(1)'], check=True)",
      "    for method in ('fork', 'spawn'):",
      "        process = multiprocessing.get_context(method).Process(target=work)",
      "        process.start(); process.join(); assert process.exitcode == 0",
    );
    const { child, ended, err } = await run([code], byEnvironment(rings, TRACE));
    expect([await ended, err()]).toEqual([[0, null], ""]);
    expect(onlyRing(rings)).toMatchObject({ pid: child.pid, rank: 2 });
    expect(callWords(onlyRing(rings).calls)).toEqual(["dumps:0"]);
  });

  it("have none where they only launch: a scheduler's number is the launcher's, too", async () => {
    const rings = newFolder();
    const code = program(
      "import json, os, subprocess, sys",
      "if 'RANK' in os.environ: json.dumps(1)",
      "else:",
      "    for rank in '01':",
      "        subprocess.run([sys.executable, __file__], env={**os.environ, 'RANK': rank}, check=True)",
    );
    const variables = { SLURM_PROCID: "0", SLURM_JOB_ID: "77", FAULTLINE_TRACE: "json@dumps" };
    expect(await (await run([code], byEnvironment(rings, variables))).ended).toEqual([0, null]);
    const all = ringFiles(rings).map(ringOf);
    expect(all.map(({ rank, job }) => [rank, job])).toEqual([
      [0, "77"],
      [1, "77"],
    ]);
    for (const { calls } of all) expect(callWords(calls)).toEqual(["dumps:0"]);
  });

  it.each(LIBRARIES)(
    "have one of their own, of no rank, once they do what is traced, %s",
    async (_how, file) => {
      const rings = newFolder();
      const code = program(
        "import json, os, sys",
        "class Slow:",
        "    pass",
        "def fork(_):",
        "    pid = os.fork()",
        "    if pid == 0:",
        "        return 'child'",
        "    os.waitpid(pid, 0)",
        "    return 'parent'",
        "json.dumps(1)",
        // The child returns from a call that its parent began.
        "json.dumps(Slow(), default=fork)",
        "json.dumps(2)",
      );
      const { child, ended } = await run(
        [code],
        byEnvironment(rings, { ...TRACE, FAULTLINE_LIBRARY: file }),
      );
      expect(await ended).toEqual([0, null]);
      const all = ringFiles(rings).map(ringOf);
      expect(all).toHaveLength(2);
      const [parent, forked] = all[0]!.pid === child.pid ? all : all.toReversed();
      expect(callWords(parent!.calls)).toEqual(["dumps:0", "dumps:0", "dumps:0"]);
      expect(parent).toMatchObject({ rank: 2, ended: { how: "exit", code: 0 } });
      expect(callWords(forked!.calls).filter((word) => !word.endsWith("…"))).not.toEqual([]);
      expect(forked).toMatchObject({ rank: null, ended: { how: "exit", code: 0 } });
    },
  );

  it("that are the same process after an exec take the ring over", async () => {
    const rings = newFolder();
    const code = program(
      "import json, os, sys",
      "json.dumps(1)",
      "if 'again' not in sys.argv: os.environ.pop('FAULTLINE_PROBED'); os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])",
    );
    expect(await (await run([code], byEnvironment(rings, TRACE))).ended).toEqual([0, null]);
    expect(callWords(onlyRing(rings).calls)).toEqual(["dumps:0"]);
  });
});
