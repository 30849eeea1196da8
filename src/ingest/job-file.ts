/** The optional job.json: what the user knows of the job better than its files (see the contract). */
import { readFile } from "node:fs/promises";
import { errorText, UserError } from "../base/errors.ts";
import type { FabricPort } from "../model/fabric.ts";
import { MAX_RANKS, type Rank } from "../model/ids.ts";
import { fieldsOf } from "../base/json.ts";

export interface JobFile {
  readonly name: string;
  readonly worldSize: number | null;
  readonly ranks: ReadonlyMap<Rank, RankPlace>;
  /** Leaf switch of each NIC. */
  readonly leaves: ReadonlyMap<string, string>;
  /** Of one replica in an iteration. */
  readonly microBatches: number | null;
  /** Machine → incidents it had of late; null where nobody counts. */
  readonly incidents: ReadonlyMap<string, number> | null;
  /** Machine → its other names in the monitoring: addresses, exporters' pods; null where the file has no such table. */
  readonly machineNames: ReadonlyMap<string, readonly string[]> | null;
  /** Where machines hang in the network, of a whole site: not in the file, but known beside it. */
  readonly fabric?: readonly FabricPort[];
  /** Pipeline stage of a rank; null where the file does not say how the job is laid out. */
  stageOf(rank: Rank): number | null;
}

/** For what is known without one. */
export const NO_JOB_FILE: JobFile = {
  name: "",
  worldSize: null,
  ranks: new Map(),
  leaves: new Map(),
  microBatches: null,
  incidents: null,
  machineNames: null,
  stageOf: () => null,
};

interface RankPlace {
  readonly machine: string | null;
  readonly gpu: number | null;
  readonly nic: string | null;
}

const HINT = "see docs/inputs.md; every field is optional";

export async function readJobFile(path: string): Promise<JobFile> {
  let root: unknown;
  try {
    root = JSON.parse((await readFile(path, "utf8")).replace(/^\uFEFF/, ""));
  } catch (error) {
    const why = errorText(error);
    throw new UserError(`${path}: cannot be read as a job file: ${why}`, HINT, 2);
  }
  return parseJobFile(root, path);
}

export function parseJobFile(root: unknown, path: string): JobFile {
  const job = fieldsOf(root);
  if (!job) throw new UserError(`${path}: a job file is a JSON object`, HINT, 2);
  const worldSize = job["worldSize"];
  if (worldSize !== undefined && !(isCount(worldSize) && worldSize > 0 && worldSize <= MAX_RANKS)) {
    throw new UserError(
      `${path}: worldSize must be a whole number from 1 to ${MAX_RANKS}`,
      HINT,
      2,
    );
  }
  const ranks = new Map<Rank, RankPlace>();
  const list = job["ranks"];
  if (list !== undefined && !Array.isArray(list)) {
    throw new UserError(`${path}: ranks must be a list`, HINT, 2);
  }
  for (const item of list ?? []) {
    const entry = fieldsOf(item);
    if (!entry || !isCount(entry["rank"])) {
      throw new UserError(`${path}: every item of ranks needs a whole number "rank"`, HINT, 2);
    }
    ranks.set(entry["rank"], {
      machine: textOf(entry["machine"]),
      gpu: isCount(entry["gpu"]) ? entry["gpu"] : null,
      nic: textOf(entry["nic"]),
    });
  }
  return {
    name: textOf(job["name"]) ?? "",
    worldSize: worldSize ?? null,
    ranks,
    microBatches:
      isCount(job["microBatches"]) && job["microBatches"] > 0 ? job["microBatches"] : null,
    incidents: incidentsOf(job["incidents"], path),
    machineNames: machineNamesOf(job["machineNames"], path),
    leaves: leavesOf(fieldsOf(job["network"])?.["leaves"], path),
    stageOf: stagesOf(fieldsOf(job["parallel"]), job["rankOrder"]),
  };
}

function incidentsOf(value: unknown, path: string): ReadonlyMap<string, number> | null {
  if (value === undefined) return null;
  const counts = fieldsOf(value);
  const entries = Object.entries(counts ?? {}).filter(([, count]) => isCount(count));
  if (!counts || entries.length < Object.keys(counts).length)
    throw new UserError(`${path}: incidents must map machines to whole numbers`, HINT, 2);
  return new Map(entries as [string, number][]);
}

/** { "node777": ["10.40.21.32", "dcgm-exporter-d66sz"] } */
function machineNamesOf(
  given: unknown,
  path: string,
): ReadonlyMap<string, readonly string[]> | null {
  if (given === undefined) return null;
  const entries = Object.entries(fieldsOf(given) ?? {});
  const isNames = (names: unknown): names is string[] =>
    Array.isArray(names) && names.every((name) => typeof name === "string");
  if (!fieldsOf(given) || !entries.every(([, names]) => isNames(names)))
    throw new UserError(`${path}: machineNames must map machines to lists of names`, HINT, 2);
  return new Map(entries as [string, string[]][]);
}

const USUAL_ORDER = "tp-cp-dp-pp";

/** "tp-dp-pp": the first dimension varies fastest. Experts share the ranks of other dimensions, so ep is no factor. */
function stagesOf(
  parallel: Readonly<Record<string, unknown>> | null,
  rankOrder: unknown,
): (rank: Rank) => number | null {
  const size = (dimension: string): number => {
    const given = parallel?.[dimension];
    return isCount(given) && given > 0 ? given : 1;
  };
  if (size("pp") === 1) return () => null;
  const order = (typeof rankOrder === "string" ? rankOrder : USUAL_ORDER).split("-");
  const before = order.slice(0, Math.max(0, order.indexOf("pp"))).filter((name) => name !== "ep");
  const apart = before.reduce((product, dimension) => product * size(dimension), 1);
  return (rank) => Math.floor(rank / apart) % size("pp");
}

/** { "leaf0": ["node000/mlx5_0", …] } the other way round. */
function leavesOf(given: unknown, path: string): Map<string, string> {
  const leaves = new Map<string, string>();
  if (given === undefined) return leaves;
  const byLeaf = fieldsOf(given);
  if (!byLeaf) throw new UserError(`${path}: network.leaves must be an object`, HINT, 2);
  for (const [leaf, nics] of Object.entries(byLeaf)) {
    if (!Array.isArray(nics) || !nics.every((nic) => typeof nic === "string"))
      throw new UserError(`${path}: network.leaves.${leaf} must be a list of NICs`, HINT, 2);
    for (const nic of nics) leaves.set(nic, leaf);
  }
  return leaves;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
