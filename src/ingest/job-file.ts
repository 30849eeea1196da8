/** The optional job.json: what the user knows of the job better than its files (see the contract). */
import { readFile } from "node:fs/promises";
import { UserError } from "../base/errors.ts";
import { MAX_RANKS, type Rank } from "../model/ids.ts";

export interface JobFile {
  readonly name: string;
  readonly worldSize: number | null;
  readonly ranks: ReadonlyMap<
    Rank,
    { readonly machine: string | null; readonly gpu: number | null }
  >;
}

export async function readJobFile(path: string): Promise<JobFile> {
  const hint = "see the job.json section of the README; every field is optional";
  let root: unknown;
  try {
    root = JSON.parse((await readFile(path, "utf8")).replace(/^\uFEFF/, ""));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(`${path}: cannot be read as a job file: ${why}`, hint, 2);
  }
  const job = record(root);
  if (!job) throw new UserError(`${path}: a job file is a JSON object`, hint, 2);
  const worldSize = job["worldSize"];
  if (worldSize !== undefined && !(isCount(worldSize) && worldSize > 0 && worldSize <= MAX_RANKS)) {
    throw new UserError(
      `${path}: worldSize must be a whole number from 1 to ${MAX_RANKS}`,
      hint,
      2,
    );
  }
  const ranks = new Map<Rank, { machine: string | null; gpu: number | null }>();
  const list = job["ranks"];
  if (list !== undefined && !Array.isArray(list)) {
    throw new UserError(`${path}: ranks must be a list`, hint, 2);
  }
  for (const item of list ?? []) {
    const entry = record(item);
    if (!entry || !isCount(entry["rank"])) {
      throw new UserError(`${path}: every item of ranks needs a whole number "rank"`, hint, 2);
    }
    ranks.set(entry["rank"], {
      machine: typeof entry["machine"] === "string" ? entry["machine"] : null,
      gpu: isCount(entry["gpu"]) ? entry["gpu"] : null,
    });
  }
  return {
    name: typeof job["name"] === "string" ? job["name"] : "",
    worldSize: worldSize ?? null,
    ranks,
  };
}

function record(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : null;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
