/**
 * What a run's own traces prove without a baseline: one rank among many that do the same is held up, in every step,
 * where none of the others is; or its kernels are slower than theirs (FLARE §5.2.3). What all ranks have in common, a
 * slow loader everywhere or much work on the CPU, may be how the job is: that takes a healthy run to tell.
 */
import { median } from "../../maths/robust.ts";
import { wasserstein } from "../../maths/wasserstein.ts";
import type { Regression } from "../../model/regression.ts";
import {
  STALL_CAUSES,
  type RankProfile,
  type RunProfile,
  type StallCause,
} from "../../model/trace-profile.ts";
import { layoutRegressions } from "./compare-run.ts";
import { healthyFrom, pooled, relativeLatencies } from "./healthy.ts";
import { gpusApart, kernelGrowth, sameWorkers } from "./kernel-regressions.ts";
import { slowGpuWords } from "./kernel-words.ts";
import { stepStalls, type StallGrowth } from "./stall-regressions.ts";
import { stallWords } from "./stall-words.ts";

/** Of the step, above every step of every peer. Three times what is asked with a baseline: peers are no healthy run. */
const ABOVE_PEERS = 0.03;
/** Two peers can be odd in opposite ways; three that agree are a norm. */
const LEAST_PEERS = 3;
/** More ranks than this share are no exception among their peers. */
const MOST_ACCUSED = 1 / 3;
const LEAST_STEPS = 2;
/** Healthy GPUs of one kind differ by some percent; FLARE's underclocked ones by 14 % and more (Table 4). */
const SLOWER_THAN_PEERS = 1.1;

export function peerRegressions(run: RunProfile): Regression[] {
  const ranks = run.ranks.filter(({ stepMs }) => stepMs.length >= LEAST_STEPS);
  const found: Regression[] = layoutRegressions(run, []);
  for (const cause of STALL_CAUSES) {
    // Time without a name is no proof.
    if (cause === "host") continue;
    const does = ranks.filter((profile) => cause !== "dataloader" || median(profile.loads) > 0);
    const accused = outliers(does, cause);
    if (accused.length > 0) found.push(stallsAmongPeers(run, does, accused, cause));
  }
  const slow = slowAmongPeers(run);
  return [...found, ...slow].toSorted((a, b) => b.share - a.share);
}

/** Ranks whose least step lies above the others' worst. */
function outliers(profiles: readonly RankProfile[], cause: StallCause): RankProfile[] {
  const least = (profile: RankProfile): number => Math.min(...stepStalls(profile, [cause]));
  const most = (profile: RankProfile): number => Math.max(...stepStalls(profile, [cause]));
  const byLeast = profiles.toSorted((a, b) => least(b) - least(a));
  for (let n = Math.floor(MOST_ACCUSED * profiles.length); n >= 1; n--) {
    const others = byLeast.slice(n);
    if (others.length < LEAST_PEERS) continue;
    const worst = Math.max(...others.map(most));
    if (least(byLeast[n - 1]!) > worst + ABOVE_PEERS) return byLeast.slice(0, n);
  }
  return [];
}

function stallsAmongPeers(
  run: RunProfile,
  does: readonly RankProfile[],
  accused: readonly RankProfile[],
  cause: StallCause,
): Regression {
  const others = does.filter((profile) => !accused.includes(profile));
  const healthy = {
    ...healthyFrom([{ ...run, ranks: others }]),
    learntFrom: "what its peers differ by",
  };
  const healthyShare = Math.max(
    ...others.map((profile) => Math.max(...stepStalls(profile, [cause]))),
  );
  const list = accused.map((profile): StallGrowth => {
    const share = median(stepStalls(profile, [cause]));
    const isInter = median(profile.interStalls[cause]) > 0.5 * share;
    const growth = share - healthyShare;
    const distance = wasserstein(relativeLatencies(profile), pooled(others));
    const latency = { distance, learntDistance: healthy.rankDistance, isMoved: false };
    return { profile, cause, share, healthyShare, growth, limit: ABOVE_PEERS, isInter, ...latency };
  });
  const said = stallWords(list, healthy);
  return {
    ...said,
    why: said.why.replace("in the baseline", `at most in any step of its ${others.length} peers`),
    threshold: "3 % of the step above every step of every peer, in every step of its own",
  };
}

/** Only ranks that do the same work are peers: the last stage of a pipeline has the loss to compute. */
function slowAmongPeers(run: RunProfile): Regression[] {
  const slow = sameWorkers(run.ranks).flatMap((workers) => {
    const growths = workers.map((profile) => {
      const others = workers.filter((other) => other !== profile);
      return kernelGrowth(profile, healthyFrom([{ ...run, ranks: others }]));
    });
    const found = growths.filter(({ isAll, ratio }) => isAll && ratio >= SLOWER_THAN_PEERS);
    const rest = workers.filter((profile) => !found.some((one) => one.profile === profile));
    const isFew = found.length <= MOST_ACCUSED * workers.length && rest.length >= LEAST_PEERS;
    const isApart = SLOWER_THAN_PEERS > gpusApart({ ...run, ranks: rest });
    return isFew && isApart ? found : [];
  });
  if (slow.length === 0) return [];
  const others = run.ranks.filter((profile) => !slow.some((one) => one.profile === profile));
  const said = slowGpuWords(slow, run, healthyFrom([{ ...run, ranks: others }]), SLOWER_THAN_PEERS);
  const threshold =
    "three quarters of the computing time 10 % slower or more than the same kernels of ranks that do the same";
  return [{ ...said, threshold }];
}
