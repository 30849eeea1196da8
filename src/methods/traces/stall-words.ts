/** What holds the CPU up, in words: the call, its share of the step, the healthy level. */
import { cutText, percent } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { Cause } from "../../model/cause.ts";
import type { Regression } from "../../model/regression.ts";
import type { StallCause } from "../../model/trace-profile.ts";
import type { Healthy } from "./healthy.ts";
import { MOST_NAME, regression, tidy } from "./regression-words.ts";
import type { StallGrowth } from "./stall-regressions.ts";

const DOES: Readonly<Record<StallCause, string>> = {
  dataloader: "the GPU waits for the data loader",
  "garbage-collection": "Python's garbage collection blocks the CPU, and the GPU is idle",
  synchronization: "the CPU waits for the GPU before it issues more work, so the GPU is idle",
  "memory-management": "allocating and freeing GPU memory blocks the CPU, and the GPU is idle",
  host: "the CPU issues kernels late, and the GPU is idle",
};

/** A stall without a name is the machine's or the framework's; a Python function is somebody's code (package checks). */
export function stallWords(list: readonly StallGrowth[], healthy: Healthy): Regression {
  const [{ cause }] = list as [StallGrowth];
  const worst = list.reduce((a, b) => (b.growth > a.growth ? b : a));
  const share = median(list.map((one) => one.share));
  const healthyShare = median(list.map((one) => one.healthyShare));
  const isInter = list.filter((one) => one.isInter).length * 2 > list.length;
  const name = worst.profile.stallNames[cause][0];
  const python = cause === "host" && name !== undefined && isPython(name.name);
  const calls = callsOf(worst, healthy);
  const call = name && (cause !== "host" || python) ? cutText(name.name, MOST_NAME) : null;
  const grew = `${percent(share, 1)} of the step, ${percent(healthyShare, 1)} in the baseline`;
  const inCall = call === null ? "" : `, in ${call}`;
  const why = `${DOES[cause]}${inCall}${callWords(cause, calls)}: ${grew}`;
  const found = { ...(call === null ? {} : { call }), ...(calls === null ? {} : { calls }) };
  const limit = Math.max(...list.map((one) => one.limit));
  const excess = median(list.map((one) => one.growth / one.limit));
  const growth = median(list.map((one) => one.growth));
  const level = `more than ${percent(limit, 1)} of the step above the healthy level (the larger of 1 % and ${healthy.learntFrom})`;
  const profiles = list.map(({ profile }) => profile);
  const blamed: Cause = cause !== "host" ? cause : python ? "user-program" : "cpu-stall";
  if (isInter) {
    const value = median(profiles.map(({ vInter }) => median(vInter)));
    const usual = median(
      profiles.map(({ rank }) => healthy.level(rank, ({ vInter }) => vInter).centre),
    );
    return {
      ...regression(
        blamed,
        profiles,
        "vInter",
        { value, baseline: usual, share: growth, excess },
        why,
        level,
      ),
      ...found,
    };
  }
  // The distance in milliseconds of this run's steps; shares of the step are what was compared.
  const stepMs = median(profiles.map((profile) => median(profile.stepMs)));
  const value = median(list.map(({ distance }) => distance)) * stepMs;
  const baseline = median(list.map(({ learntDistance }) => learntDistance)) * stepMs;
  const moved = worst.isMoved
    ? `issue latencies have become shorter by more than ${healthy.learntFrom}; stalls `
    : "stalls ";
  return {
    ...regression(
      blamed,
      profiles,
      "issueLatency",
      { value, baseline, share: growth, excess: excess * (worst.isMoved ? 2 : 1) },
      why,
      moved + level,
    ),
    ...found,
  };
}

export function isPython(name: string): boolean {
  return /\.py\(\d+\)|<built-in/.test(name);
}

/** How often it calls in a step, now and when healthy, where that grew. */
function callsOf({ profile, cause }: StallGrowth, healthy: Healthy): [number, number] | null {
  if (cause !== "synchronization" && cause !== "memory-management") return null;
  const now = median(profile.calls[cause]);
  const before = healthy.level(profile.rank, ({ calls }) => calls[cause]).centre;
  return now <= before ? null : [now, before];
}

/** ", 25 synchronisations per step instead of 1". */
function callWords(cause: StallCause, calls: readonly [number, number] | null): string {
  if (calls === null) return "";
  const what = cause === "synchronization" ? "synchronisations" : "allocations and frees";
  return `, ${tidy(calls[0])} ${what} per step instead of ${tidy(calls[1])}`;
}
