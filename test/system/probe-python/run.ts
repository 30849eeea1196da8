/** Starts Python programs with the probe inside, and reads what they left. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach } from "vitest";
import { readRing } from "../../../src/ingest/probe-ring/read-ring.ts";
import {
  COLLECTION,
  ITERATION,
  type HostCalls,
  type ProbeProcess,
} from "../../../src/model/probe.ts";
import { unlessThere } from "../../support/lacking.ts";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
export const PACKAGE = join(ROOT, "probe/python");
export const SITE = join(PACKAGE, "site");
export const script = (name: string): string => join(ROOT, "test/system/probe-python", name);
/** A path where no library is: the probe then does without. */
export const NO_LIBRARY = "/nonexistent/libfaultline.so";

const folder = mkdtempSync(join(tmpdir(), "faultline-probe-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
export const newFolder = (): string => mkdtempSync(join(folder, "f-"));

const works = (program: string, ...words: string[]): boolean =>
  spawnSync(program, words, { stdio: "ignore", timeout: 60_000 }).status === 0;

/** Every Python of another version that this machine has. */
export const pythons: readonly string[] = ["3", "3.8", "3.9", "3.10", "3.12", "3.13", "3.14"]
  .map((version) => `python${version}`)
  .filter((program) => works(program, "-c", "import mmap, ctypes"));
export const [python] = pythons;
export const whyNoPython = unlessThere(python !== undefined, "Python", "python3");
export const pythonOfTorch: string | null =
  ["python3", "/usr/bin/python3"].find((program) =>
    works(program, "-c", "import torch.distributed as d; assert d.is_gloo_available()"),
  ) ?? null;

/**
 * The C library; null without a compiler. Built once for all test files: its name is its source's, and it appears by
 * being renamed.
 */
export const library: string | null = (() => {
  if (!works("make", "--version") || !works("cc", "--version")) return null;
  const sources = join(ROOT, "probe/nccl");
  const hash = createHash("sha256").update(process.arch);
  for (const name of readdirSync(sources).sort())
    if (/\.([ch]|def)$|^Makefile$/.test(name)) hash.update(readFileSync(join(sources, name)));
  const built = join(tmpdir(), `faultline-${hash.digest("hex").slice(0, 16)}.so`);
  if (!existsSync(built)) {
    const out = newFolder();
    const made = spawnSync("make", ["-s", "-C", sources, `OUT=${out}`], { encoding: "utf8" });
    if (made.status !== 0) throw new Error(made.stderr);
    renameSync(join(out, "libfaultline.so"), built);
  }
  return built;
})();
export const whyNoCompiler = unlessThere(library !== null, "C compiler", "gcc make");
/** With the C library and without it, as far as it is there. */
export const LIBRARIES: readonly (readonly [string, string])[] = [
  ...(library === null ? [] : [["with the C library", library] as const]),
  ["in Python alone", NO_LIBRARY],
];

export type Variables = Readonly<Record<string, string>>;

export interface Started {
  readonly child: ChildProcess;
  /** [exit code, signal] */
  readonly ended: Promise<readonly [number | null, string | null]>;
  readonly out: () => string;
  readonly err: () => string;
}

/** No process outlives its test. */
const running = new Set<ChildProcess>();
const killAll = (): void => running.forEach((child) => void child.kill("SIGKILL"));
process.once("exit", killAll);
afterEach(killAll);

/** Nothing of the machine that the tests run on: no other probe's variables, no rank of a scheduler. */
const CLEAN = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) =>
      !/^(FAULTLINE|PYTHON|RANK$|WORLD_SIZE$|LOCAL_RANK$|SLURM|OMPI|PMI|MASTER_)/.test(name),
  ),
);

/** Never a library that somebody built here before. */
const OURS: Variables = {
  PYTHONDONTWRITEBYTECODE: "1",
  PYTHONPATH: PACKAGE,
  FAULTLINE_LIBRARY: library ?? NO_LIBRARY,
  // Debian's PyTorch is older than the probe asks for.
  FAULTLINE_ANY_VERSION: "1",
};

export function start(program: string, words: readonly string[], variables: Variables): Started {
  const child = spawn(program, words, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...CLEAN, ...OURS, ...variables },
  });
  running.add(child);
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const ended = once(child, "close").then(([code, signal]: unknown[]) => {
    running.delete(child);
    return [code as number | null, signal as string | null] as const;
  });
  return { child, ended, out: () => out, err: () => err };
}

/** The variables that switch the probe on by themselves. */
export const byEnvironment = (rings: string, more: Variables = {}): Variables => ({
  PYTHONPATH: [SITE, PACKAGE].join(delimiter),
  FAULTLINE_PROBE: "1",
  FAULTLINE_DIR: rings,
  ...more,
});

/** A program of these lines. */
export function program(...lines: string[]): string {
  const path = join(newFolder(), "program.py");
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
}

/** Runs it to its end. */
export async function run(words: readonly string[], variables: Variables): Promise<Started> {
  const started = start(python!, words, variables);
  await started.ended;
  return started;
}

/** Writes into the header, as the agent does. */
export function write(file: string, at: number, bytes: Uint8Array): void {
  const handle = openSync(file, "r+");
  writeSync(handle, bytes, 0, bytes.length, at);
  closeSync(handle);
}
export function put(file: string, at: number, value: number): void {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  write(file, at, bytes);
}
export const get = (file: string, at: number): number => readFileSync(file).readUInt32LE(at);

export function ringFiles(rings: string): string[] {
  try {
    return readdirSync(rings)
      .filter((name) => name.endsWith(".ring"))
      .sort()
      .map((name) => join(rings, name));
  } catch {
    return [];
  }
}

export function ringOf(file: string): ProbeProcess {
  const { probes, defects } = readRing(file, readFileSync(file));
  if (!probes?.[0]) throw new Error(JSON.stringify(defects));
  return probes[0];
}

/** The only ring in the folder. */
export function onlyRing(rings: string): ProbeProcess {
  const files = ringFiles(rings);
  if (files.length !== 1) throw new Error(`${files.length} rings: ${files.join(" ")}`);
  return ringOf(files[0]!);
}

/** Calls as words, in the order of their starts: "plain", depth, "…" where it goes on; iterations as "#3". */
export function callWords({ count, kind, name, names, detail, endNs }: HostCalls): string[] {
  const words: string[] = [];
  for (let i = 0; i < count; i++) {
    if (kind[i] === COLLECTION) continue;
    const open = Number.isNaN(endNs[i]!) ? "…" : "";
    if (kind[i] === ITERATION) words.push(`#${detail[i]}${open}`);
    else words.push(`${names[name[i]!]?.split("@")[1]}:${detail[i]}${open}`);
  }
  return words;
}
