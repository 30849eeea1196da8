/** `--fault CAUSE:KEY=VALUE:…`: the words of the contract. */
import { UserError } from "../../base/errors.ts";
import { CAUSES, type Cause } from "../../model/cause.ts";

type FaultShape = "steady" | "spike" | "fluctuation" | "ramp";
const SHAPES: readonly FaultShape[] = ["steady", "spike", "fluctuation", "ramp"];

export interface FaultSpec {
  readonly cause: Cause;
  /** The rank(s) concerned; empty where a machine, link or switch is. */
  readonly ranks: readonly number[];
  readonly machine: string | null;
  readonly link: readonly [string, string] | null;
  readonly switch: string | null;
  /** Iterations as the log prints them, from 1; `to` is the last slow one. */
  readonly from: number;
  readonly to: number;
  /** `to=drawn`: the end is drawn from Greyhound's durations once the length of an iteration is known. */
  readonly drawn: boolean;
  /** A factor on the time of what is slow; at least 1. */
  readonly severity: number;
  /** By how much of itself a step gets longer, from which the severity follows (costs.ts); 0 where not given. */
  readonly cost: number;
  /** Which form of the cause, of HOWS; "" for the plain one. */
  readonly how: string;
  readonly shape: FaultShape;
  /** Metric signature of a hardware fault: "ecc", "pcie", "nic-drop", "card-drop", "nvlink"; "" for none. */
  readonly signature: string;
}

/** What the simulator can break, and what each needs. */
export const SIMULATED_CAUSES: readonly Cause[] = [
  "gpu-slow",
  "cpu-stall",
  "network-slow",
  "network-hang",
  "gpu-hang",
  "gpu-error",
  "gpu-memory",
  "process-gone",
  "process-stopped",
  "dataloader",
  "garbage-collection",
  "synchronization",
  "minority-kernels",
  "gemm-layout",
  "slow-kernel",
  "memory-management",
  "numerical",
  "user-program",
];

/**
 * Forms of a cause, as FLARE met them (Table 4, Table 5, §7.3): synchronisation in every layer or around every
 * micro-batch (Megatron's timers), collections now and then on each rank by itself, version checks of packages in
 * every layer, masks made by the loader, and which minority kernels nobody fused.
 */
const HOWS: Readonly<Partial<Record<Cause, readonly string[]>>> = {
  synchronization: ["layer", "micro-batch"],
  "garbage-collection": ["now-and-then"],
  "user-program": ["package-check"],
  "memory-management": ["layer", "micro-batch"],
  dataloader: ["mask"],
  "minority-kernels": ["pe", "pe-act", "pe-act-norm"],
};

/** Causes after which the job does not go on. */
export const ENDING_CAUSES: readonly Cause[] = [
  "network-hang",
  "gpu-hang",
  "gpu-error",
  "gpu-memory",
  "process-gone",
  "process-stopped",
  "numerical",
  "user-program",
];

const KEYS = [
  "rank",
  "ranks",
  "machine",
  "link",
  "switch",
  "from",
  "to",
  "severity",
  "shape",
  "signature",
  "cost",
  "how",
];
/** A step that takes ten times as long is no regression any more. */
const MAX_COST = 9;
/** Beyond this no factor and no iteration makes sense. */
const MAX_NUMBER = 1e6;
const SIGNATURES = ["ecc", "pcie", "nic-drop", "card-drop", "nvlink"];

export function parseFault(text: string): FaultSpec {
  const [cause = "", ...pairs] = text.split(":");
  if (
    !(CAUSES as readonly string[]).includes(cause) ||
    !SIMULATED_CAUSES.includes(cause as Cause)
  ) {
    throw new UserError(
      `--fault ${text}: unknown cause "${cause}"`,
      `allowed: ${SIMULATED_CAUSES.join(", ")}`,
      2,
    );
  }
  const values = new Map<string, string>();
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    const key = at < 0 ? pair : pair.slice(0, at);
    if (at < 0 || !KEYS.includes(key)) {
      throw new UserError(
        `--fault ${text}: "${pair}" is not KEY=VALUE`,
        `keys: ${KEYS.join(", ")}`,
        2,
      );
    }
    if (values.has(key)) {
      throw new UserError(
        `--fault ${text}: ${key} is given twice`,
        "separate several ranks with commas: rank=1,5",
        2,
      );
    }
    values.set(key, pair.slice(at + 1));
  }
  const number = (key: string, otherwise: number, least: number): number => {
    const given = values.get(key);
    if (given === undefined) return otherwise;
    const value = given === "inf" ? Infinity : /^\d+(\.\d+)?$/.test(given) ? Number(given) : NaN;
    if (Number.isNaN(value) || value < least || (value > MAX_NUMBER && value !== Infinity)) {
      throw new UserError(
        `--fault ${text}: ${key} must be a number of at least ${least}`,
        `it is "${given}"`,
        2,
      );
    }
    return value;
  };
  const shape = (values.get("shape") ?? "steady") as FaultShape;
  if (!SHAPES.includes(shape)) {
    throw new UserError(
      `--fault ${text}: unknown shape "${shape}"`,
      `allowed: ${SHAPES.join(", ")}`,
      2,
    );
  }
  const signature = values.get("signature") ?? "";
  if (signature !== "" && !SIGNATURES.includes(signature)) {
    throw new UserError(
      `--fault ${text}: unknown signature "${signature}"`,
      `allowed: ${SIGNATURES.join(", ")}`,
      2,
    );
  }
  const how = values.get("how") ?? "";
  const hows = HOWS[cause as Cause] ?? [];
  if (how !== "" && !hows.includes(how)) {
    throw new UserError(
      `--fault ${text}: ${cause} has no form "${how}"`,
      hows.length > 0 ? `allowed: ${hows.join(", ")}` : "leave how= away",
      2,
    );
  }
  const cost = number("cost", 0, 0.001);
  if (cost > 0 && (values.has("severity") || cost > MAX_COST)) {
    throw new UserError(
      `--fault ${text}: cost is a share of the step of at most ${MAX_COST}, and replaces severity`,
      "for example cost=0.0266",
      2,
    );
  }
  const severity = number("severity", 2, 1);
  if (severity === 1) {
    throw new UserError(
      `--fault ${text}: a severity of 1 changes nothing`,
      "give a factor above 1",
      2,
    );
  }
  for (const key of ["from", "to"]) {
    if (/\./.test(values.get(key) ?? "")) {
      throw new UserError(
        `--fault ${text}: ${key} is an iteration, a whole number`,
        `it is "${values.get(key)}"`,
        2,
      );
    }
  }
  const from = number("from", 1, 1);
  const drawn = values.get("to") === "drawn";
  const to = drawn ? Infinity : number("to", Infinity, from);
  return {
    cause: cause as Cause,
    ranks: [...new Set(rankList(text, values.get("ranks") ?? values.get("rank")))],
    machine: values.get("machine") ?? null,
    link: linkOf(text, values.get("link")),
    switch: values.get("switch") ?? null,
    from,
    to,
    drawn,
    severity,
    cost,
    how,
    shape,
    signature,
  };
}

function rankList(text: string, given: string | undefined): number[] {
  if (given === undefined) return [];
  return given.split(",").map((part) => {
    const rank = Number(part);
    if (!/^\d{1,9}$/.test(part)) {
      throw new UserError(
        `--fault ${text}: "${part}" is not a rank`,
        "give a whole number, or several separated by commas",
        2,
      );
    }
    return rank;
  });
}

function linkOf(text: string, given: string | undefined): [string, string] | null {
  if (given === undefined) return null;
  const ends = given.split("-");
  if (ends.length !== 2 || ends.some((end) => end === "")) {
    throw new UserError(
      `--fault ${text}: a link is A-B`,
      "two ranks (link=3-7), two machines (link=node003-node004) or a machine and a leaf (link=node003-leaf0)",
      2,
    );
  }
  return [ends[0]!, ends[1]!];
}
