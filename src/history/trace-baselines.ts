/**
 * What is remembered of healthy runs between calls, so that later ones can be compared without giving them again: one
 * JSON file, readable, and easy to keep beside the code.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import { errorText, UserError } from "../base/errors.ts";
import type { RankProfile, RunProfile } from "../model/trace-profile.ts";

/**
 * Runs are only held against runs of the same kind (FLARE §5.2.2: by backend and scale; §8.2: by hardware). The model
 * is not part of the key: its operators are in the profile, and what is not alike is not compared.
 */
interface BaselineKey {
  /** "nccl"; "" where the traces do not say. */
  readonly backend: string;
  /** As the user calls it; "" for none. */
  readonly family: string;
  readonly worldSize: number;
  readonly hardware: string;
}

interface Entry {
  readonly key: BaselineKey;
  readonly runs: readonly RunProfile[];
}

interface Contents {
  readonly schema: typeof SCHEMA;
  readonly entries: readonly Entry[];
}

const SCHEMA = "faultline.trace-baselines/1";
/** Ranks of a run that are kept, spread evenly: levels of a thousand ranks say no more than those of these. */
const MOST_RANKS = 64;
/** Newest runs of a key that are kept: code moves on, and its old levels with it. */
const MOST_RUNS = 16;

/** Healthy runs under a key, the oldest first. */
export async function healthyRuns(file: string, key: BaselineKey): Promise<readonly RunProfile[]> {
  const { entries } = await read(file);
  return entries.find((entry) => isSame(entry.key, key))?.runs ?? [];
}

/** A run from the same source takes the place of the one before. */
export async function keepRun(file: string, key: BaselineKey, run: RunProfile): Promise<void> {
  const { entries } = await read(file);
  const before = entries.find((entry) => isSame(entry.key, key))?.runs ?? [];
  const others = before.filter(({ source }) => source !== run.source);
  const runs = [...others, { ...run, ranks: spread(run.ranks) }].slice(-MOST_RUNS);
  const rest = entries.filter((entry) => !isSame(entry.key, key));
  await write(file, { schema: SCHEMA, entries: [...rest, { key, runs }] });
}

export function keyOf({ backend, worldSize, hardware }: RunProfile, family: string): BaselineKey {
  return { backend, family, worldSize, hardware };
}

export function keyWords({ backend, family, worldSize, hardware }: BaselineKey): string {
  const parts = [family, backend, `${worldSize} rank${worldSize === 1 ? "" : "s"}`, hardware];
  return parts.filter((part) => part !== "").join(", ");
}

async function read(file: string): Promise<Contents> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { schema: SCHEMA, entries: [] };
    throw new UserError(
      `${file}: cannot be read: ${errorText(error)}`,
      "give --store a readable file",
      3,
    );
  }
  try {
    const contents = JSON.parse(text) as Partial<Contents>;
    const { schema, entries } = contents;
    if (schema === SCHEMA && Array.isArray(entries) && entries.every(isEntry))
      return contents as Contents;
  } catch {
    // Said below: whatever it is, it is no store.
  }
  throw new UserError(
    `${file} is no store of baselines (${SCHEMA})`,
    "faultline trace learn --store FILE PATH… makes one",
    3,
  );
}

/** A file that was damaged or edited by hand: enough of it is checked that nothing stumbles over it later. */
function isEntry(entry: unknown): boolean {
  const { key, runs } = (entry ?? {}) as Partial<Entry>;
  return (
    typeof key === "object" &&
    key !== null &&
    Array.isArray(runs) &&
    runs.every((run: Partial<RunProfile> | null) => {
      const ranks = run?.ranks;
      return (
        typeof run?.source === "string" &&
        Array.isArray(ranks) &&
        ranks.every((rank: Partial<RankProfile> | null) => Array.isArray(rank?.stepMs))
      );
    })
  );
}

/** Beside it first, so that a full disk does not cost what was learnt. */
async function write(file: string, contents: Contents): Promise<void> {
  try {
    await writeFile(`${file}.new`, `${JSON.stringify(contents)}\n`);
    await rename(`${file}.new`, file);
  } catch (error) {
    throw new UserError(
      `${file}: cannot be written: ${errorText(error)}`,
      "give --store a path that can be written",
    );
  }
}

function isSame(a: BaselineKey, b: BaselineKey): boolean {
  return (
    a.backend === b.backend &&
    a.family === b.family &&
    a.worldSize === b.worldSize &&
    a.hardware === b.hardware
  );
}

function spread(ranks: readonly RankProfile[]): readonly RankProfile[] {
  if (ranks.length <= MOST_RANKS) return ranks;
  return Array.from(
    { length: MOST_RANKS },
    (_, i) => ranks[Math.floor((i * ranks.length) / MOST_RANKS)]!,
  );
}
