/** Episodes of all metrics as evidence, seen in short blocks and in long ones. */
import { groupBy } from "../../base/group-by.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { Phase } from "../../model/machine-report.ts";
import { episodesOf, type Episode } from "./episodes.ts";
import { evidenceOf, kindOf, unlikeShare, type Evidence } from "./evidence.ts";
import { leastOf } from "./judge.ts";
import { extraordinary } from "./ordinary.ts";
import { isIn } from "./phases.ts";
import { viewsOf, type View } from "./views.ts";

/**
 * In longer blocks noise averages out, and what a noisy metric shows all the time becomes visible. Only for what lasts,
 * and was not seen already.
 */
export function slowEvidence(
  fleet: Fleet,
  phases: readonly Phase[],
  continuityS: number,
  quick: readonly Evidence[],
): Evidence[] {
  const seenS = new Map<string, number>();
  for (const one of quick) {
    const key = keyOf(one);
    seenS.set(key, Math.max(seenS.get(key) ?? 0, one.toS - one.fromS));
  }
  const views = fleet.grids
    .filter(({ ticks, stepS }) => ticks * stepS >= LEAST_SLOW_BLOCKS * SLOW_BLOCK_S)
    .flatMap((grid) =>
      grid.stepS < SELDOM_S
        ? viewsOf(fleet, grid, phases, SLOW_BLOCK_S)
        : viewsOf(fleet, grid, phases, grid.stepS, windowOf(grid.stepS)),
    );
  return episodeEvidence(views, phases, continuityS / 4).filter((one) => {
    const lastsS = one.toS - one.fromS;
    if (lastsS <= LONGER * (seenS.get(keyOf(one)) ?? 0)) return false;
    const { blockS, window } = one.episode!.view.peers.blocks;
    // Half a block less is what its edges may add to it.
    if (window === 1) return lastsS - blockS / 2 >= continuityS;
    // A single sample makes every window that holds it unlike: only its own samples tell how long a machine was.
    const needS = Math.max(LEAST_SHARE_OF_IT * continuityS, leastOf(one));
    return unlikeShare(one) * lastsS >= needS;
  });
}

function keyOf({ machine, deviation: { metric, direction } }: Evidence): string {
  return `${machine} ${metric} ${direction}`;
}

/** Two minutes, and four samples. */
function windowOf(stepS: number): number {
  return Math.max(4, Math.round(120 / stepS));
}

const SLOW_BLOCK_S = 60;
/** From here on a block of a minute would have too few samples. */
const SELDOM_S = 10;
const LEAST_SLOW_BLOCKS = 10;
/** What two kinds that agree must last (judge.ts). */
const LEAST_SHARE_OF_IT = 5 / 8;
/** Than what the short blocks showed of it. */
const LONGER = 1.3;

/**
 * Metrics of which nothing is known are judged together: machines that stray one after the other, each in another of them,
 * do not do the same work, and tell no more of each other than if they strayed in the same one.
 */
export function episodeEvidence(
  views: readonly View[],
  phases: readonly Phase[],
  leastS: number,
): Evidence[] {
  const groups = groupBy(views, (view) => (view.metric.group === "other" ? "other" : view));
  return [...groups.values()].flatMap((group) => {
    const episodes = group.flatMap((view) => viewEpisodes(view, phases));
    return extraordinary(episodes, group[0]!.peers.role.length, leastS).map(evidenceOf);
  });
}

/** While the job pauses for a checkpoint, whoever writes it is busier than others; that is no fault. */
function viewEpisodes(view: View, phases: readonly Phase[]): Episode[] {
  const kind = kindOf(view.metric.id, view.metric.group);
  const isQuiet = kind === "state";
  const isBusy = view.side === "high" && ["cpu", "memory", "disk", "tcp"].includes(kind);
  const ignored = (atS: number): boolean =>
    !isQuiet && (isIn(phases, atS, "idle", "warm-up") || (isBusy && isIn(phases, atS, "pause")));
  return episodesOf(view, ignored);
}
