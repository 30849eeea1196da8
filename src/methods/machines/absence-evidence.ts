/** Who fell silent, or lost a device, as evidence; gaps that did not last as jitters. */
import type { Fleet } from "../../model/fleet.ts";
import type { Jitter, Phase } from "../../model/machine-report.ts";
import { absences, gaps, lostDevices, silences, type Silence } from "./absence.ts";
import { lossEvidence, silenceEvidence, type Evidence } from "./evidence.ts";
import { cameWith } from "./halted.ts";
import type { JobPace } from "./job-pace.ts";
import { tidySeconds } from "./words.ts";

/** Absence is judged after two intervals and this share of the continuity. */
const ABSENCE_SHARE = 1 / 4;
/** When so many fall silent at once, the monitoring did. */
const OUTAGE_SHARE = 0.3;
export const LEAST_MACHINES = 3;

export function absenceEvidence(
  fleet: Fleet,
  continuityS: number,
  toS: number,
  missing: string[],
  pace: JobPace,
  halts: readonly Phase[],
): Evidence[] {
  if (fleet.isCut) {
    missing.push("a file ends in the middle: who stopped reporting cannot be told from it");
    return [];
  }
  const needS = ABSENCE_SHARE * continuityS;
  // No synchronous job goes on without a machine: its samples are late.
  const isLate = ({ fromS, toS: untilS }: Silence): boolean =>
    untilS - fromS < continuityS && pace.goesOn(fromS, untilS) === true;
  const silent = silences(fleet).filter(
    (one) => one.toS - one.fromS >= Math.max(2 * one.stepS, needS) && !isLate(one),
  );
  const lost = lostDevices(fleet, needS).filter(
    ({ machine }) => !silent.some((one) => one.machine === machine && one.exporter !== "host"),
  );
  const returned = gaps(fleet, needS);
  const away = absences(fleet, returned, continuityS).filter(
    ({ fromS, toS: backS }) => !isOutage(returned, fromS, backS, fleet.machines.length),
  );
  const whole = silent.filter(({ exporter }) => exporter === null);
  if (
    fleet.machines.length >= LEAST_MACHINES &&
    whole.length > Math.max(1, OUTAGE_SHARE * fleet.machines.length)
  ) {
    missing.push(
      `${whole.length} of ${fleet.machines.length} machines stopped reporting: the monitoring failed, or the job ended; nobody is accused of it`,
    );
    return lost.map((one) => lossEvidence(one, toS));
  }
  const ofGpus = silent.filter(({ exporter }) => exporter === "gpu");
  // A driver that lost a GPU may answer nobody.
  const isLost = (one: Silence): boolean =>
    ofGpus.length === 1 && one === ofGpus[0] && halts.some((halt) => cameWith(one, halt));
  return [...silent, ...away]
    .map((one) => ({ ...silenceEvidence(one), ...(isLost(one) ? { decides: true } : {}) }))
    .concat(lost.map((one) => lossEvidence(one, toS)));
}

/** Whether so many were silent at that time that the monitoring was. */
function isOutage(
  returned: readonly Silence[],
  fromS: number,
  toS: number,
  machines: number,
): boolean {
  const silent = new Set(
    returned.filter((one) => one.fromS < toS && one.toS > fromS).map(({ machine }) => machine),
  );
  return machines >= LEAST_MACHINES && silent.size > Math.max(1, OUTAGE_SHARE * machines);
}

/** Gaps that did not last; of an outage of the monitoring one sentence instead of one for each machine. */
export function gapJitters(fleet: Fleet, continuityS: number, missing: string[]): Jitter[] {
  const returned = gaps(fleet, continuityS / 4);
  const outages = returned.filter(({ fromS, toS }) =>
    isOutage(returned, fromS, toS, fleet.machines.length),
  );
  if (outages.length > 0) {
    const fromS = outages.reduce((first, one) => Math.min(first, one.fromS), Infinity);
    const toS = outages.reduce((last, one) => Math.max(last, one.toS), -Infinity);
    missing.push(
      `between ${clock(fromS)} and ${clock(toS)} most machines had no samples at times: the monitoring was away, not the machines`,
    );
  }
  return returned
    .filter((one) => !outages.includes(one) && one.toS - one.fromS < continuityS)
    .map(({ machine, fromS, toS, exporter }) => ({
      machine: fleet.machines[machine]!,
      metric: "reporting",
      fromS,
      toS,
      why: `no samples of its ${exporter === "gpu" ? "GPUs" : "host"} for ${tidySeconds(toS - fromS)}, then again`,
    }));
}

function clock(seconds: number): string {
  return new Date(Math.round(1000 * seconds)).toISOString().slice(11, 19);
}
