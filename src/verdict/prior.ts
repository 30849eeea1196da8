/**
 * What was likely before anything was looked at: how often devices of a kind are to blame, and how often machines that
 * broke before break again. It decides where the evidence does not.
 */
import { thousandths } from "../base/numbers.ts";
import { count } from "../base/text.ts";
import type { Cause } from "../model/cause.ts";
import type { SuspectType, VerdictKind } from "../model/finding.ts";
import { isSlow } from "./case.ts";

export interface Prior {
  /** Of a hundred incidents, how many are of devices of this kind. */
  readonly share: number | null;
  /** What the odds are multiplied by, as a logarithm. */
  readonly logTimes: number;
  readonly says: string;
}

/** InfiniteHBD's trace: 584 faults of 400 servers in 349 days, 303 of them with a known class of hardware or system. */
const KNOWN_CLASS = 303;
const OF_STOPS: Partial<Record<SuspectType, number>> = {
  gpu: 158,
  nic: 30,
  link: 40,
  // Fans, power supplies, boards, CPUs, system crashes.
  machine: 72,
  storage: 3,
};

/** With so little known the shares only lean, they do not push: fleets differ. */
const LEANING = 0.25;
const EVEN = 1 / 6;

/**
 * Of InfiniteHBD's faults, how much likelier a server was hit that had 0, 1, 2, 3 or more faults in the 90 days before,
 * against any server: 284 faults where 468 would be usual, 143 for 71, 69 for 25, 88 for 20.
 */
const RETURNS = [0.61, 2.01, 2.76, 4.39] as const;

/** A rank that stopped for its GPU is counted among the GPUs. */
const DEVICE_OF: Partial<Record<Cause, SuspectType>> = {
  "gpu-slow": "gpu",
  "gpu-hang": "gpu",
  "gpu-error": "gpu",
};

export function priorOf(
  kind: VerdictKind,
  given: SuspectType,
  cause: Cause,
  machine: string | null,
  incidents: ReadonlyMap<string, number> | undefined,
): Prior | null {
  const type = given === "rank" ? (DEVICE_OF[cause] ?? given) : given;
  // Who is slow is the judge's to say (methods/slow), whose own prior knows how many there are to choose from.
  const known = isSlow({ kind }) ? undefined : OF_STOPS[type];
  const share = known === undefined ? null : known / KNOWN_CLASS;
  const earlier = machine === null || !incidents ? null : (incidents.get(machine) ?? 0);
  if (share === null && earlier === null) return null;
  const returns = earlier === null ? 0 : Math.log(RETURNS[Math.min(3, earlier)]!);
  const says = [
    share === null
      ? ""
      : `${Math.round(100 * share)} % of such faults are of a ${type} (InfiniteHBD's trace, ${KNOWN_CLASS} faults of known class)`,
    earlier === null
      ? ""
      : `${machine} had ${earlier === 0 ? "no incident" : count(earlier, "incident")} before`,
  ].filter((text) => text !== "");
  return {
    share: share === null ? null : thousandths(share),
    logTimes: (share === null ? 0 : LEANING * Math.log(share / EVEN)) + returns,
    says: says.join("; "),
  };
}
