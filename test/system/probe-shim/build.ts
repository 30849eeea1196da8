/** Builds libfaultline.so and the stubs that it is tried on (probe/nccl/tests/stub), and runs programs under it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach } from "vitest";
import { unlessThere } from "../../support/lacking.ts";

const NATIVE = fileURLToPath(new URL("../../../probe/nccl", import.meta.url));
const STUB = join(NATIVE, "tests/stub");

const works = (program: string): boolean =>
  spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
export const canBuild = process.platform === "linux" && works("make") && works("cc");
export const whyNot = unlessThere(canBuild, "C compiler", "gcc make");

const folders: string[] = [];
export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "faultline-shim-"));
  folders.push(made);
  return made;
}
afterAll(() => {
  for (const each of folders) rmSync(each, { recursive: true, force: true });
});

function make(words: readonly string[]): void {
  const made = spawnSync("make", ["-s", "-j2", ...words], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(made.stderr);
}

/** A folder with the library, the stubs and the program. */
export function build(...settings: readonly string[]): string {
  const out = folder();
  make(["-C", NATIVE, `OUT=${out}`, ...settings, `${out}/libfaultline.so`]);
  make(["-C", STUB, `OUT=${out}`, ...settings]);
  return out;
}

/** Only the stubs: they are found before those of another folder. */
export function buildStubs(...settings: readonly string[]): string {
  const out = folder();
  make(["-C", STUB, `OUT=${out}`, ...settings]);
  return out;
}

export type Settings = Readonly<Record<string, string>>;

export interface Job {
  readonly child: ChildProcess;
  /** Where its rings are. */
  readonly rings: string;
  readonly said: () => string;
  readonly complained: () => string;
  readonly ended: Promise<number | null>;
}

const running = new Set<ChildProcess>();
afterEach(() => running.forEach((child) => void child.kill("SIGKILL")));

export function start(built: string, words: readonly string[], settings: Settings = {}): Job {
  const rings = join(folder(), "rings");
  const [program, ...rest] = words;
  const child = spawn(program!, rest, {
    env: {
      PATH: process.env["PATH"],
      LD_PRELOAD: join(built, "libfaultline.so"),
      LD_LIBRARY_PATH: built,
      FAULTLINE_DIR: rings,
      ...settings,
    },
  });
  running.add(child);
  let said = "";
  let complained = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (complained += chunk.toString()));
  const ended = once(child, "close").then(([code]: unknown[]) => {
    running.delete(child);
    return code as number | null;
  });
  return { child, rings, said: () => said, complained: () => complained, ended };
}

export function ringsIn(rings: string): string[] {
  try {
    return readdirSync(rings)
      .filter((name) => name.endsWith(".ring"))
      .toSorted()
      .map((name) => join(rings, name));
  } catch {
    return [];
  }
}
