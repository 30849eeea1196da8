/** The wheel of the probe: built, installed into a fresh environment beside Debian's PyTorch, switched on and off, removed. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { unlessThere } from "../support/lacking.ts";
import {
  library,
  newFolder,
  onlyRing,
  PACKAGE,
  program,
  pythonOfTorch,
  ringFiles,
  ringOf,
  script,
  start,
  type Started,
  type Variables,
  whyNoCompiler,
} from "./probe-python/run.ts";
import { longTest } from "../support/cases.ts";

const hasVenv =
  pythonOfTorch !== null && spawnSync(pythonOfTorch, ["-c", "import ensurepip, venv"]).status === 0;
const why = unlessThere(hasVenv, "PyTorch and venv", "python3-torch python3-venv");
/** Nothing but the environment's own packages: no PYTHONPATH of a checkout, no library beside it. */
const ALONE: Variables = { PYTHONPATH: "", FAULTLINE_LIBRARY: "", PYTHONDONTWRITEBYTECODE: "" };
const RANKS = 2;

function buildWheel(env: Variables = {}): string {
  const words = [join(PACKAGE, "build_backend.py"), newFolder()];
  const options = { encoding: "utf8", env: { ...process.env, ...env } } as const;
  return execFileSync(pythonOfTorch!, words, options).trim();
}

function freshEnvironment(): { python: string; packages: string } {
  const folder = newFolder();
  execFileSync(pythonOfTorch!, ["-m", "venv", "--system-site-packages", folder]);
  const version = readdirSync(join(folder, "lib")).find((name) => name.startsWith("python3"))!;
  return {
    python: join(folder, "bin/python"),
    packages: join(folder, "lib", version, "site-packages"),
  };
}

const pip = (python: string, ...words: string[]): string =>
  execFileSync(python, ["-m", "pip", "--disable-pip-version-check", ...words], {
    encoding: "utf8",
  });

const everything = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    // What pip compiles of itself while it runs is not the probe's.
    .filter((name) => !/^(pip|setuptools|pkg_resources|_distutils_hack)/.test(name))
    .sort();

describe.skipIf(!hasVenv)(`the wheel of the probe${why}`, () => {
  let python = "";
  let packages = "";
  let before: string[] = [];
  let wheel = "";

  beforeAll(() => {
    ({ python, packages } = freshEnvironment());
    before = everything(packages);
    wheel = buildWheel();
    pip(python, "install", "--no-index", wheel);
  }, 240_000);

  function gloo(rings: string, variables: Variables): Started[] {
    const meet = join(newFolder(), "meet");
    return Array.from({ length: RANKS }, (_, rank) =>
      start(python, [script("train.py"), meet, "6", "none", "0", "0"], {
        ...ALONE,
        RANK: String(rank),
        WORLD_SIZE: String(RANKS),
        FAULTLINE_DIR: rings,
        ...variables,
      }),
    );
  }

  it.skipIf(whyNoCompiler !== "")("has the library inside, and says for which glibc", () => {
    expect(basename(wheel)).toMatch(/^faultline_probe-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl$/);
    expect(existsSync(join(packages, "faultline_probe/libfaultline.so"))).toBe(true);
  });

  longTest("costs a job nothing that does not ask for it", async () => {
    const rings = newFolder();
    const seen = program(
      "import os, sys",
      "print([name for name in sys.modules if 'faultline' in name], 'NCCL_PROFILER_PLUGIN' in os.environ)",
    );
    for (const variables of [{}, { FAULTLINE_PROBE: "0" }]) {
      const started = start(python, [seen], { ...ALONE, FAULTLINE_DIR: rings, ...variables });
      expect([await started.ended, started.out(), started.err()]).toEqual([
        [0, null],
        "[] False\n",
        "",
      ]);
    }
    const off = gloo(rings, {});
    for (const { ended, err } of off) expect([await ended, err()]).toEqual([[0, null], ""]);
    expect(ringFiles(rings)).toEqual([]);
  });

  it("records a job of Gloo when switched on by the environment", async () => {
    const rings = newFolder();
    const ranks = gloo(rings, { FAULTLINE_PROBE: "1" });
    for (const { ended, err } of ranks) expect([await ended, err()]).toEqual([[0, null], ""]);
    const read = ringFiles(rings).map(ringOf);
    expect(read.map(({ rank }) => rank).toSorted((a, b) => Number(a) - Number(b))).toEqual([0, 1]);
    for (const { calls } of read) expect(calls.count).toBeGreaterThan(6);
  });

  it.skipIf(whyNoCompiler !== "")("names NCCL its library, unless the job named one", async () => {
    const say = program("import os", "print(os.environ['NCCL_PROFILER_PLUGIN'])");
    const on = { ...ALONE, FAULTLINE_DIR: newFolder(), FAULTLINE_PROBE: "1" };
    const own = start(python, [say], on);
    await own.ended;
    expect(own.out().trim()).toBe(join(packages, "faultline_probe/libfaultline.so"));
    const theirs = start(python, [say], { ...on, NCCL_PROFILER_PLUGIN: "theirs" });
    await theirs.ended;
    expect(theirs.out().trim()).toBe("theirs");
  });

  it("refuses where it cannot work, in one line, and the job goes on", async () => {
    const hooked = program(
      "import sys",
      "sys.platform = 'plan9'",
      "import faultline_probe",
      "faultline_probe.start()",
      "print('trained')",
    );
    const started = start(python, [hooked], { ...ALONE, FAULTLINE_DIR: newFolder() });
    expect(await started.ended).toEqual([0, null]);
    expect(started.out()).toBe("trained\n");
    expect(started.err()).toMatch(/^faultline: the probe works on Linux, not on plan9; .*\n$/);
  });

  /** A PyTorch of nothing but its versions and an optimizer. */
  function stubTorch(torch: string, nccl: string | null, hip = "None"): string {
    const at = join(newFolder(), "torch");
    for (const below of ["optim", "cuda"]) mkdirSync(join(at, below), { recursive: true });
    const cuda = nccl === null ? "" : "from . import nccl";
    const files = {
      "__init__.py": `__version__ = "${torch}"\nfrom . import cuda, version, optim`,
      "version.py": `hip = ${hip}`,
      "cuda/__init__.py": `${cuda}\ndef synchronize(): pass`,
      "cuda/nccl.py": `def version(): return (${nccl ?? ""})`,
      "optim/__init__.py": "from .optimizer import Optimizer",
      "optim/optimizer.py": "class Optimizer:\n  def step(self): pass",
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(at, name), `${text}\n`);
    return join(at, "..");
  }

  const refusal = (what: string): RegExp =>
    new RegExp(`^faultline: the probe needs ${what} \\(.*; the job goes on without the probe\n$`);
  it.each([
    ["1.13.1", null, "None", refusal("PyTorch 2.1 or newer, this is 1.13.1")],
    ["2.0.1+cu118", "2, 14, 3", "None", refusal("PyTorch 2.1 or newer, this is 2.0.1")],
    ["2.1.2+cu121", "2, 18, 1", "None", refusal("NCCL 2.19 or newer, this is 2.18.1")],
    ["2.1.2+rocm5.6", "2, 18, 1", "'5.6'", null],
    ["2.2.0", "2, 19, 3", "None", null],
    ["2.11.0+cpu", null, "None", null],
    ["3.0a0", "2, 28, 9", "None", null],
    ["git-1234", null, "None", null],
  ])("of PyTorch %s with NCCL (%s), HIP %s: refused in one line, or recorded", async (...stub) => {
    const [torch, nccl, hip, expected] = stub;
    const train = program(
      "import os, torch, time",
      "torch.cuda.synchronize()",
      "print('NCCL_PROFILER_PLUGIN' in os.environ, 'trained')",
    );
    const rings = newFolder();
    const started = start(python, [train], {
      ...ALONE,
      PYTHONPATH: stubTorch(torch, nccl, hip),
      RANK: "0",
      FAULTLINE_PROBE: "1",
      FAULTLINE_DIR: rings,
      FAULTLINE_ANY_VERSION: "",
    });
    expect(await started.ended).toEqual([0, null]);
    const hasPlugin = expected === null && library !== null;
    expect(started.out()).toBe(`${hasPlugin ? "True" : "False"} trained\n`);
    if (expected === null) expect(started.err()).toBe("");
    else expect(started.err()).toMatch(expected);
    expect(readdirSync(rings).length > 0).toBe(expected === null);
  });

  it("leaves nothing behind when it is removed", () => {
    pip(python, "uninstall", "-y", "faultline-probe");
    expect(everything(packages)).toEqual(before);
  });

  longTest("works without a compiler, in Python alone, from the sources by pip", async () => {
    const options = { env: { ...process.env, FAULTLINE_PURE: "1" }, encoding: "utf8" } as const;
    execFileSync(python, ["-m", "pip", "install", "--no-index", PACKAGE], options);
    expect(existsSync(join(packages, "faultline_probe/libfaultline.so"))).toBe(false);
    const rings = newFolder();
    const one = start(python, ["-m", "faultline_probe", "-c", "import gc; gc.collect()"], {
      ...ALONE,
      FAULTLINE_DIR: rings,
    });
    expect([await one.ended, one.err()]).toEqual([[0, null], ""]);
    expect(onlyRing(rings).calls.count).toBeGreaterThan(0);
  });
});
