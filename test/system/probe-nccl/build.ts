/** Builds the native probe and its driver into a folder of the test's own. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const SOURCES = fileURLToPath(new URL("../../../probe/nccl", import.meta.url));

export const folder = mkdtempSync(join(tmpdir(), "faultline-nccl-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

const works = (program: string, words: readonly string[]): boolean =>
  spawnSync(program, words, { stdio: "ignore" }).status === 0;

export const hasCompiler = works("make", ["--version"]) && works("cc", ["--version"]);

/** Whether programs built with a sanitizer also run here: its library may be missing, or the kernel not to its taste. */
function hasSanitizer(flags: string): boolean {
  if (!hasCompiler) return false;
  const program = join(folder, "sanitized");
  writeFileSync(`${program}.c`, "int main(void) { return 0; }\n");
  return works("cc", [...flags.split(" "), "-o", program, `${program}.c`]) && works(program, []);
}

export const SANITIZERS = [
  { target: "tsan", isThere: hasSanitizer("-fsanitize=thread"), needs: "libtsan" },
  {
    target: "asan",
    isThere: hasSanitizer("-fsanitize=address,undefined"),
    needs: "libasan, libubsan",
  },
] as const;

export interface Built {
  readonly driver: string;
  readonly library: string;
}

export function build(target: "driver" | "tsan" | "asan"): Built {
  const out = join(folder, "build");
  const made = spawnSync("make", ["-j2", "-C", SOURCES, target, `OUT=${out}`], {
    encoding: "utf8",
  });
  if (made.status !== 0) throw new Error(`make ${target} failed: ${made.stdout}${made.stderr}`);
  const where = target === "driver" ? out : join(out, target);
  return { driver: join(where, "driver"), library: join(where, "libfaultline.so") };
}

/** Compiles a program against ring.h and runs it; what it prints. */
export function printedBy(code: string): string {
  const program = join(folder, "printer");
  writeFileSync(`${program}.c`, code);
  const words = ["-std=c11", `-I${SOURCES}`, "-o", program, `${program}.c`];
  const compiled = spawnSync("cc", words, { encoding: "utf8" });
  if (compiled.status !== 0) throw new Error(compiled.stderr);
  return spawnSync(program, { encoding: "utf8" }).stdout;
}
