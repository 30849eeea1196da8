/** Slow kernels and GPUs in words. */
import { rankWords, percent } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { Regression } from "../../model/regression.ts";
import type { RankProfile, RunProfile } from "../../model/trace-profile.ts";
import type { Healthy } from "./healthy.ts";
import type { KernelGrowth } from "./kernel-regressions.ts";
import type { BadLayout } from "./layout.ts";
import type { MoreMinority } from "./minority-regressions.ts";
import { kernelName, regression, tidy } from "./regression-words.ts";

export function layoutWords(
  list: readonly { profile: RankProfile; layout: BadLayout }[],
): Regression {
  const worst = list.reduce((a, b) => (b.layout.cost > a.layout.cost ? b : a)).layout;
  const { row, misaligned, peer } = worst;
  const profiles = [...new Set(list.map(({ profile }) => profile))];
  const ofRank = profiles.map((profile) =>
    list.filter((one) => one.profile === profile).reduce((sum, { layout }) => sum + layout.cost, 0),
  );
  const why =
    `${row.kernel} ${row.shape} reaches ${row.tflops.toFixed(0)} TFLOPS, an aligned product of similar size ${peer.tflops.toFixed(0)}: ` +
    `dimension ${misaligned.dimension} = ${misaligned.size} is not a multiple of 16 bytes; pad it to ${misaligned.paddedSize}`;
  const figures = {
    value: row.tflops,
    baseline: peer.tflops,
    share: median(ofRank),
    excess: (2 * peer.tflops) / row.tflops,
  };
  return regression(
    "gemm-layout",
    profiles,
    "flops",
    figures,
    why,
    "below 75 % of an aligned product of similar size, and 1 % of the step or more",
  );
}

export function slowGpuWords(
  list: readonly KernelGrowth[],
  run: RunProfile,
  healthy: Healthy,
  limit: number,
): Regression {
  const profiles = list.map(({ profile }) => profile);
  const ratio = median(list.map((one) => one.ratio));
  const isAll = profiles.length === run.ranks.length;
  const who = isAll
    ? "on all ranks that left traces"
    : `on ${rankWords(profiles.map(({ rank }) => rank))}`;
  const example = list[0]!.slower[0]!;
  const why = `all kinds of compute kernels take ${ratio.toFixed(2)} times as long ${who}, for example ${kernelName(example.row.name)}: ${example.healthyUs.toFixed(0)} → ${example.row.medianUs.toFixed(0)} µs`;
  const flops = median(profiles.map((profile) => flopsMedian([profile])));
  const before = flopsMedian(profiles.flatMap(({ rank }) => healthy.of(rank)));
  const hasFlops = !Number.isNaN(flops) && !Number.isNaN(before);
  const figures = {
    value: hasFlops ? flops : 1 / ratio,
    baseline: hasFlops ? before : 1,
    share: median(list.map(({ cost }) => cost)),
    excess: (ratio - 1) / (limit - 1),
  };
  return regression(
    "gpu-slow",
    profiles,
    "flops",
    figures,
    why,
    `three quarters of the computing time slower than in the baseline, by ${percent(limit - 1, 1)} (the larger of 5 % and what healthy GPUs differ by)`,
  );
}

export function slowKernelWords(list: readonly KernelGrowth[]): Regression {
  const worst = list.reduce((a, b) => (b.cost > a.cost ? b : a)).slower[0]!;
  const { row, healthyUs, ratio } = worst;
  const shape = row.shape === "" ? "" : ` ${row.shape}`;
  const why = `${kernelName(row.name)}${shape} takes ${row.medianUs.toFixed(0)} µs instead of ${healthyUs.toFixed(0)} µs (×${ratio.toFixed(2)}), ${tidy(row.perStep)} times per step, while other kernels are as fast as before`;
  const costs = list.map(({ slower }) => slower.reduce((sum, { cost }) => sum + cost, 0));
  const figures = {
    value: row.medianUs,
    baseline: healthyUs,
    share: median(costs),
    excess: 1 + (ratio - 1) / 0.1,
  };
  return regression(
    "slow-kernel",
    list.map(({ profile }) => profile),
    "flops",
    figures,
    why,
    "kernels 10 % slower or more than in the baseline that cost 1 % of the step or more",
  );
}

export function minorityWords(list: readonly MoreMinority[], healthy: Healthy): Regression {
  const worst = list.reduce((a, b) => (b.grown.growth > a.grown.growth ? b : a));
  const kernels = worst.more
    .slice(0, 3)
    .map(
      ({ name, share, healthyShare, perStep, healthyPerStep }) =>
        `${kernelName(name)} (${percent(healthyShare, 1)} → ${percent(share, 1)} of the step, ${tidy(healthyPerStep)} → ${tidy(perStep)} launches)`,
    );
  const value = median(list.map(({ grown }) => grown.share));
  const baseline = median(list.map(({ grown }) => grown.healthyShare));
  const why = `small kernels take ${percent(value, 1)} of the step instead of ${percent(baseline, 1)}: ${kernels.join(", ")}`;
  const limit = Math.max(...list.map(({ grown }) => grown.limit));
  const figures = {
    value,
    baseline,
    share: median(list.map(({ grown }) => grown.growth)),
    excess: median(list.map(({ grown }) => grown.growth / grown.limit)),
  };
  const threshold = `more than ${percent(limit, 1)} above the healthy level (the larger of 1 % and ${healthy.learntFrom})`;
  return regression(
    "minority-kernels",
    list.map(({ profile }) => profile),
    "vMinority",
    figures,
    why,
    threshold,
  );
}

function flopsMedian(profiles: readonly RankProfile[]): number {
  return median(profiles.flatMap(({ flops }) => flops.slice(0, 1).map(({ tflops }) => tflops)));
}
