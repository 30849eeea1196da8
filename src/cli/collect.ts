/**
 * `faultline collect`: runs collect-hang.sh on every machine of a job, and packs what comes back into one archive: a tar per
 * machine. A machine that does not answer in time is named; what it sent until then is kept.
 */
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip } from "node:zlib";
import { printJson } from "./output.ts";
import { UserError } from "../base/errors.ts";
import { readOwn } from "../base/own-files.ts";
import { count, harmless } from "../base/text.ts";
import { openTarget } from "../live/agent/evidence/dump-target.ts";
import { type CollectMachine, machinesToAsk, type WhichMachines } from "./collect-machines.ts";
import type { Io } from "./io.ts";

export interface CollectFlags extends WhichMachines {
  readonly atOnce: number;
  readonly out: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

interface Collected {
  readonly machine: string;
  /** Unpacked; 0: nothing came. */
  readonly bytes: number;
  /** It came to its end. */
  readonly isWhole: boolean;
  /** What it lacks, in words. */
  readonly remarks: readonly string[];
}

/** For a machine that is late to end in order; then it is killed. */
const GRACE_MS = 2000;
const MOST_REMARK_BYTES = 64 << 10;
const MOST_REMARKS = 64;
/** A machine that answers sends this much at most, unpacked. */
const MOST_BYTES = 8 * 1024 ** 3;

export async function runCollect(io: Io, flags: CollectFlags): Promise<number> {
  const machines = await machinesToAsk(flags);
  const script = readOwn(new URL("./collect-hang.sh", import.meta.url));
  const target = await openTarget(flags.out);
  const folder = await mkdtemp(join(tmpdir(), "faultline-collect-"));
  const collected: Collected[] = [];
  try {
    let next = 0;
    // One at a time goes into the archive.
    let packing = Promise.resolve();
    const lane = async (): Promise<void> => {
      while (next < machines.length) {
        const at = next++;
        const machine = machines[at]!;
        const file = join(folder, `${at}.tar`);
        const one = await ask(machine, script, file, 1000 * flags.limit);
        collected[at] = one;
        const name = `${machine.name.replace(/[^A-Za-z0-9_.-]/g, "-")}.tar`;
        packing = packing.then(async () => {
          if (one.bytes > 0) await target.addFile(name, file, MOST_BYTES);
          await rm(file, { force: true });
        });
        await packing;
        if (!flags.quiet) say(io, one);
      }
    };
    await Promise.all(Array.from({ length: Math.min(flags.atOnce, machines.length) }, lane));
    const answered = collected.filter(({ bytes }) => bytes > 0);
    if (answered.length === 0)
      throw new UserError(
        `nothing came from ${machines.length === 1 ? machines[0]!.name : `any of ${machines.length} machines`}: ${collected[0]?.remarks.at(-1) ?? "no answer"}`,
        "see docs/guides/collect.md",
        3,
      );
    await target.end();
    report(io, flags, collected, answered.length);
    return 0;
  } catch (error) {
    target.abandon();
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function report(
  io: Io,
  { out, json }: CollectFlags,
  machines: readonly Collected[],
  answered: number,
): void {
  if (json) {
    printJson(io, { schema: "faultline.collect/1", out, machines });
    return;
  }
  const of = answered === machines.length ? "" : ` of ${machines.length}`;
  io.out.write(
    `${harmless(out)}: from ${answered}${of} ${machines.length === 1 ? "machine" : "machines"}; next: faultline diagnose ${harmless(out)}\n`,
  );
}

function say(io: Io, { machine, bytes, isWhole, remarks }: Collected): void {
  for (const line of remarks) io.err.write(`${harmless(line)}\n`);
  if (bytes === 0) io.err.write(`${harmless(machine)}: nothing came from it\n`);
  else if (!isWhole)
    io.err.write(
      `${harmless(machine)}: cut off after ${count(bytes, "byte")}; the beginning is kept\n`,
    );
}

async function ask(
  { name, words }: CollectMachine,
  script: Buffer,
  file: string,
  limitMs: number,
): Promise<Collected> {
  const [program, ...rest] = words;
  const child = spawn(program, rest, { stdio: ["pipe", "pipe", "pipe"] });
  const remarks: string[] = [];
  let text = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (more: string) => {
    if (text.length < MOST_REMARK_BYTES) text += more;
  });
  // Without a rest of the script the other side has nothing to do.
  child.stdin.on("error", () => undefined);
  child.stdin.end(script);
  const ended = new Promise<number | null>((resolve) => {
    child.on("error", (error) => {
      remarks.push(`${name}: ${error.message}`);
      resolve(null);
    });
    child.on("close", resolve);
  });
  let isLate = false;
  // The script ends by itself before; asked to end, it cleans up.
  const timers = [
    setTimeout(() => {
      isLate = true;
      child.kill();
    }, limitMs),
    setTimeout(() => child.kill("SIGKILL"), limitMs + GRACE_MS),
    // Whatever it started may still hold the pipe.
    setTimeout(() => child.stdout.destroy(), limitMs + 2 * GRACE_MS),
  ];
  let isWhole = true;
  // Cut off or not, what came is kept.
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  const came = firstOf(child.stdout, () => (isWhole = false));
  await pipeline(came, gunzip, limited(MOST_BYTES), createWriteStream(file)).catch(
    () => (isWhole = false),
  );
  child.kill();
  const status = await ended;
  for (const timer of timers) clearTimeout(timer);
  isWhole &&= status === 0;
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  remarks.push(...lines.slice(0, MOST_REMARKS));
  if (isLate) remarks.push(`${name}: not done within ${limitMs / 1000} s`);
  else if (status !== 0 && status !== null) remarks.push(`${name}: ended with status ${status}`);
  const bytes = await stat(file).then(
    ({ size }) => size,
    () => 0,
  );
  return { machine: name, bytes, isWhole: isWhole && bytes > 0, remarks };
}

/** Until it breaks off. */
async function* firstOf(
  chunks: AsyncIterable<Buffer>,
  onBreak: () => void,
): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch {
    onBreak();
  }
}

function limited(most: number) {
  return async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let have = 0;
    for await (const chunk of chunks) {
      have += chunk.length;
      if (have > most) throw new Error("too much");
      yield chunk;
    }
  };
}
