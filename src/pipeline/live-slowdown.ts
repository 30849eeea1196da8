/** A running job that is slow, on one screen: what the judge says of a culprit, and what its wires show → findings → verdict. */
import type { LiveJob } from "../ingest/live-job.ts";
import { withIterations } from "../methods/methods.ts";
import {
  culpritFinding,
  type LiveStretch,
  slowDownFinding,
  wireFinding,
} from "../methods/slow/live-findings.ts";
import { lookOnWire, type SlowIterations } from "../methods/slow/on-wire.ts";
import type { Finding, NewFinding } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import type { LiveCulprit } from "../model/live-judgement.ts";
import type { Mitigation } from "../model/mitigation.ts";
import type { IncidentPicture } from "../model/picture.ts";
import type { IterationSeries } from "../model/series.ts";
import type { Verdict } from "../model/verdict.ts";
import type { WireTimes } from "../model/wire-times.ts";
import { fuse } from "../verdict/fuse.ts";
import { withMitigation } from "./diagnose.ts";
import { type GroupTests, testsOf } from "./group-tests.ts";
import { pictureOfSlowDown } from "./picture.ts";

export interface SlowDownFacts {
  readonly live: LiveJob;
  /** Ranks whose agents can be asked. */
  readonly reachable: readonly Rank[];
  /** Who is slow; null where iterations take longer, and nothing is judged. */
  readonly culprit: LiveCulprit | null;
  readonly stretch: LiveStretch;
  /** Ranks that other incidents accuse: they do not only wait; and what an iteration takes without any of them. */
  readonly accused: ReadonlySet<Rank>;
  readonly usualMs: number;
  /** The whole job's iterations. */
  readonly series: IterationSeries;
  /** Machine → incidents it had of late. */
  readonly incidents: ReadonlyMap<string, number>;
  /** How long sends were on the wire, and the iterations that tell; asked for only where the network may be slow. */
  wires(this: void): Promise<{ readonly times: WireTimes; readonly slow: SlowIterations }>;
}

export interface LiveDiagnosis {
  readonly verdict: Verdict;
  readonly picture: IncidentPicture;
  /** Sends on the wire show which link or NIC it is, or may be. */
  readonly isOnWire: boolean;
  /** Who has to test their GPUs and links for more; null where the verdict names one device, or tests would not tell. */
  readonly tests: GroupTests | null;
}

/** Ranks up to which a plan to live with it is made at once: for more it takes seconds (faultline plan makes it). */
const MOST_PLANNED = 1024;
/** What began so few iterations ago may be the first stretch of several. */
const SHORT_STRETCH = 14;

export async function diagnoseCulprit(facts: SlowDownFacts): Promise<LiveDiagnosis> {
  const { live, reachable, culprit, stretch, series, incidents } = facts;
  const job = withIterations({
    ...live.job,
    watched: new Set(reachable),
    series: [series],
    ...(incidents.size > 0 ? { incidents } : {}),
  });
  const { named, isOnWire, isOneDevice } = culprit ? await findingOf(facts, culprit, job) : NOBODY;
  const findings: Finding[] = [
    ...(stretch.isPaced
      ? [{ ...slowDownFinding(stretch), id: "f1", method: "iterations/live" as const }]
      : []),
    ...(named ? [{ ...named, id: "f2", method: "slow/live" as const }] : []),
  ];
  const beside = besideOf(facts);
  const complete = (verdict: Verdict): Verdict => planned(job, verdict, beside);
  const verdict = complete(fuse(job, findings, []));
  const isNowAndThen = stretch.intermittent !== undefined;
  const mayEnd = isNowAndThen || stretch.last - stretch.slowFrom < SHORT_STRETCH;
  const isOfAll = culprit?.type === "all" && culprit.cause === "network-slow";
  const tests = isOneDevice
    ? null
    : testsOf(job, verdict, findings, { isNowAndThen, mayEnd, isOfAll }, complete);
  return { verdict, picture: pictureOfSlowDown(job, verdict), isOnWire, tests };
}

interface Named {
  readonly named: NewFinding | null;
  readonly isOnWire: boolean;
  /** What else goes through the NICs at its ends tells which of three it is. */
  readonly isOneDevice: boolean;
}

const NOBODY: Named = { named: null, isOnWire: false, isOneDevice: false };

async function findingOf(facts: SlowDownFacts, culprit: LiveCulprit, job: Job): Promise<Named> {
  const { stretch, accused, reachable } = facts;
  const own = new Set([...culprit.ranks, ...accused]);
  const waiting = reachable.filter((rank) => !own.has(rank));
  const named = culpritFinding(culprit, stretch, job, waiting);
  if (culprit.type !== "wire" && culprit.type !== "all") return { ...NOBODY, named };
  const { times, slow } = await facts.wires();
  // One rank is named by its sends, a group by how long its communication takes.
  const { found, isFine } = lookOnWire(times, slow, culprit.ranks.length === 1);
  const ends = new Set([...(found?.ranks ?? []), ...(found?.senders ?? [])]);
  if (found && (culprit.type === "all" || culprit.ranks.some((rank) => ends.has(rank))))
    return {
      named: wireFinding(found, culprit, stretch, job),
      isOnWire: true,
      isOneDevice: !found.isAmbiguous,
    };
  // Where what went over the suspected link was through as ever, whoever waits there only looked like it.
  const isCleared = culprit.ranks.length <= 2 && isFine(culprit.ranks);
  return { ...NOBODY, named: isCleared ? null : named };
}

function planned(job: Job, verdict: Verdict, beside: Mitigation["beside"]): Verdict {
  if (job.worldSize > MOST_PLANNED) return verdict;
  const { mitigation, ...rest } = withMitigation(job, verdict);
  if (!mitigation) return rest;
  return { ...rest, mitigation: beside ? { ...mitigation, beside } : mitigation };
}

/** Who else is slow, and the pace without any of them. */
function besideOf({ accused, usualMs, culprit }: SlowDownFacts): Mitigation["beside"] {
  const own = new Set(culprit?.ranks);
  const ranks = [...accused].filter((rank) => !own.has(rank)).sort((a, b) => a - b);
  return ranks.length > 0 ? { ranks, healthyMs: usualMs } : undefined;
}
