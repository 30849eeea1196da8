/** Greyhound's tables 3 and 4 on simulated probing jobs, with three rows more than the paper has (points with |z| > 3 dropped, as Greyhound's code does). */
import {
  bocd,
  bocdVerified,
  ours,
  slidingWindow,
  withoutOutliers,
  type Detector,
} from "./baselines.ts";
import { probeJobs, type ProbePlan } from "./probe-jobs.ts";

const METHODS: readonly (readonly [string, Detector, paper: readonly [string, string]])[] = [
  ["sliding window", slidingWindow, ["99.5 / 0.0 / 25.0", "93.5 / 1.5 / 12.2"]],
  ["BOCD", bocd, ["77.8 / 18.4 / 0.0", "69.2 / 34.0 / 0.0"]],
  ["BOCD + verification", bocdVerified, ["100.0 / 0.0 / 0.0", "99.1 / 0.0 / 2.3"]],
  ["sliding window, outliers dropped", withoutOutliers(slidingWindow), ["", ""]],
  ["BOCD, outliers dropped", withoutOutliers(bocd), ["", ""]],
  ["BOCD + verification, outliers dropped", withoutOutliers(bocdVerified), ["", ""]],
  ["ours", ours, ["", ""]],
];

export function table(plan: ProbePlan, seed: number, scale: number): string {
  const counts = METHODS.map(() => ({ hit: 0, missed: 0, wrong: 0, quiet: 0 }));
  const failures: string[] = [];
  let jobs = 0;
  let dated = 0;
  let slow = 0;
  for (const job of probeJobs(plan, seed, scale)) {
    jobs++;
    if (job.isSlow) slow++;
    for (const [m, [name, detect]] of METHODS.entries()) {
      const found = detect(job.times);
      const says = found.length > 0;
      counts[m]![job.isSlow ? (says ? "hit" : "missed") : says ? "wrong" : "quiet"]++;
      if (name !== "ours") continue;
      if (job.isSlow && found.some((at) => Math.abs(at - job.onset) <= 2)) dated++;
      if (says !== job.isSlow)
        failures.push(
          `${job.what}, ×${job.effect.toFixed(2)} from ${job.onset}: ${found.join() || "nothing"}`,
        );
    }
  }
  const share = (part: number, all: number): string =>
    `${all === 0 ? "–" : ((100 * part) / all).toFixed(1)} % (${part}/${all})`;
  return [
    `${plan.name}: ${jobs} jobs, ${slow} slow, seeds ${seed} to ${seed + jobs - 1}, ${Math.round(2000 * scale)} iterations each`,
    "",
    "| method | accuracy | false positives | false negatives | in the paper |",
    "|---|---|---|---|---|",
    ...METHODS.map(([name, , paper], m) => {
      const { hit, missed, wrong, quiet } = counts[m]!;
      const [p] = plan.name === "computation" ? [paper[0]] : [paper[1]];
      return `| ${name} | ${share(hit + quiet, jobs)}${interval(hit + quiet, jobs)} | ${share(wrong, wrong + quiet)} | ${share(missed, hit + missed)} | ${p} |`;
    }),
    "",
    `ours dates ${dated} of ${slow} onsets to within 2 iterations${failures.length > 0 ? `; wrong: ${failures.join("; ")}` : ""}`,
    "",
  ].join("\n");
}

/** Wilson's 95 % interval. */
function interval(hits: number, all: number): string {
  const z = 1.96;
  const p = hits / all;
  const centre = (p + (z * z) / (2 * all)) / (1 + (z * z) / all);
  const half =
    (z * Math.sqrt((p * (1 - p)) / all + (z * z) / (4 * all * all))) / (1 + (z * z) / all);
  const edge = (value: number): string => (100 * Math.min(1, Math.max(0, value))).toFixed(1);
  return `, 95 %: ${edge(centre - half)}–${edge(centre + half)}`;
}
