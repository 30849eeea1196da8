/** A month of incidents at one site: what is broken where, and the files that the jobs leave of it. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pick, randomInt, seeded, type Random } from "../../src/base/random.ts";
import { folderOutput } from "../../src/cli/folder-output.ts";
import type { Cause } from "../../src/model/cause.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../src/simulate/cluster/spec.ts";
import { runSimulation } from "../../src/simulate/run.ts";

const MACHINES = 12;
const JOBS = 30;
/** Tensor-parallel groups span two machines: without their dumps either may be the culprit's. */
const GPUS_EACH = 1;
const TENSOR = 2;
const MACHINES_EACH = 8;
/** Machines that break again and again, and the share of machine faults that are theirs. */
const CHRONIC = [2, 5, 9];
const CHRONIC_SHARE = 0.55;

export const FAMILIES = ["slow", "hang", "tie", "known line", "site's line"] as const;
export type Family = (typeof FAMILIES)[number];

export interface SiteIncident {
  readonly number: number;
  readonly job: string;
  readonly family: Family;
  /** The site's machines by the names that the simulated job gives them. */
  readonly machines: ReadonlyMap<string, string>;
  /** The machine where that is what people need to know; else null, and the cause is. */
  readonly truth: { readonly machine: string | null; readonly cause: Cause };
  /** The line that an operator would point at; null where no log tells. */
  readonly line: string | null;
  readonly folder: string;
}

/** What this site's own programs say when they fail; the library knows none of it. */
const SITE_LINES: readonly { readonly text: string; readonly cause: Cause }[] = [
  {
    text: "vaultfs: lease of shard 17 was refused by the coordinator, giving up",
    cause: "storage",
  },
  {
    text: "tokenmill: manifest revision 812 has no partition for this epoch",
    cause: "user-config",
  },
  { text: "quotad: allocation 4411 was reclaimed by a higher priority tenant", cause: "scheduler" },
];
/** The library takes it for the program's fault; here it has always been a GPU's. */
const FALSE_FRIEND = {
  text: "NVRM: Xid (PCI:0000:3b:00): 13, pid=4242, Graphics Exception: ESR 0x505730=0x10009",
  cause: "gpu-error",
} as const;
const KNOWN_LINES: readonly { readonly text: string; readonly cause: Cause }[] = [
  {
    text: "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, GPU has fallen off the bus.",
    cause: "gpu-error",
  },
  FALSE_FRIEND,
];

/** Of the two halves of the month no job is in both. */
export function siteIncident(seed: number, number: number, of: number, root: string): SiteIncident {
  const random = seeded(seed * 100_003 + number);
  const half = number < of / 2 ? 0 : JOBS / 2;
  const job = `job${half + randomInt(random, JOBS / 2)}`;
  const family = pick(random, DRAWN);
  const culprit = random() < CHRONIC_SHARE ? pick(random, CHRONIC) : randomInt(random, MACHINES);
  const place = randomInt(random, MACHINES_EACH);
  const names = namesOf(random, culprit, place);
  const folder = join(root, `i${number}`);
  const machines = new Map(
    names.map((name, i) => [`node${String(i).padStart(3, "0")}`, name] as const),
  );
  const about = { number, job, family, machines, folder };
  const machine = names[place]!;
  if (family === "known line" || family === "site's line") {
    const { text, cause } = pick(random, family === "known line" ? KNOWN_LINES : SITE_LINES);
    const line = text.replace(/\b(17|812|4411|4242)\b/, String(1 + randomInt(random, 9000)));
    writeLogs(folder, random, place, line);
    return { ...about, truth: { machine: null, cause }, line };
  }
  const cause = family === "slow" ? pick(random, SLOW) : pick(random, STOPS);
  const rank = GPUS_EACH * place + randomInt(random, GPUS_EACH);
  simulateInto(folder, seed + number, family, cause, rank, random);
  if (family === "tie") loseDumps(folder, place);
  return {
    ...about,
    truth: { machine: cause === "network-slow" ? null : machine, cause },
    line: null,
  };
}

/** Ties twice as often as each of the others. */
const DRAWN: readonly Family[] = [...FAMILIES, "tie"];
const SLOW: readonly Cause[] = ["gpu-slow", "network-slow"];
const STOPS: readonly Cause[] = ["gpu-hang", "process-gone"];

function namesOf(random: Random, culprit: number, place: number): string[] {
  const others = Array.from({ length: MACHINES }, (_, i) => i).filter((i) => i !== culprit);
  const chosen = Array.from({ length: MACHINES_EACH }, (_, i) =>
    i === place ? culprit : others.splice(randomInt(random, others.length), 1)[0]!,
  );
  return chosen.map((i) => `m${String(i).padStart(2, "0")}`);
}

function simulateInto(
  folder: string,
  seed: number,
  family: Family,
  cause: Cause,
  rank: number,
  random: Random,
): void {
  const isSlow = family === "slow";
  const words =
    cause === "network-slow"
      ? `network-slow:link=${rank}-${(rank + MACHINES_EACH / 2) % MACHINES_EACH}:from=8:severity=4`
      : `${cause}:rank=${rank}:from=${isSlow ? 8 : 4}${isSlow ? `:severity=${(1.3 + random()).toFixed(2)}` : ""}`;
  const spec = completeSpec({
    gpus: GPUS_EACH * MACHINES_EACH,
    gpusPerMachine: GPUS_EACH,
    tp: TENSOR,
    pp: 2,
    iterations: isSlow ? 16 : 6,
    microBatches: 2,
    layersPerStage: 1,
    seed,
    faults: [parseFault(words)],
  });
  runSimulation(spec, [isSlow ? "operators" : "flight-recorder"], folderOutput(folder));
  rmSync(join(folder, "truth.json"), { force: true });
}

/** The machines of the culprit's tensor-parallel group wrote no dumps: who is missing is all that is known. */
function loseDumps(folder: string, place: number): void {
  for (const name of readdirSync(join(folder, "flight-recorder"))) {
    const machine = Math.floor(Number(/(\d+)$/.exec(name)?.[1] ?? -1) / GPUS_EACH);
    if (machine >> 1 === place >> 1) rmSync(join(folder, "flight-recorder", name));
  }
}

function writeLogs(folder: string, random: Random, place: number, line: string): void {
  mkdirSync(join(folder, "logs"), { recursive: true });
  const atMs = Date.UTC(2026, 10, 1, 10) + randomInt(random, 86_400_000);
  const stamp = (s: number): string =>
    new Date(atMs + 1000 * s).toISOString().slice(0, 19).replace("T", " ");
  const rank = GPUS_EACH * place;
  for (let r = 0; r < GPUS_EACH * MACHINES_EACH; r++) {
    const lines = Array.from(
      { length: 20 },
      (_, i) => `${stamp(i)} [rank${r}] iteration ${i + 1} loss ${(4 - i / 20).toFixed(3)}`,
    );
    if (r === rank) lines.push(`${stamp(20)} [rank${r}] ERROR ${line}`);
    writeFileSync(join(folder, "logs", `rank${r}.log`), `${lines.join("\n")}\n`);
  }
}
