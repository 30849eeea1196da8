/**
 * validation/tests: slow GPUs and links, from tests that the job was asked to run (Greyhound §4.3). Unlike all that is
 * seen of a running job these were made to tell: every GPU did the same product, every link carried the same bytes, and
 * none at the same time as a neighbour.
 */
import { count, rankWords } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Method } from "../../model/method.ts";
import type { ValidationReport } from "../../model/validation.ts";
import { newestReports, products, transfers, type Comparable } from "./measurements.ts";
import { slowLinks, type LinkVerdict } from "./slow-links.ts";
import { slowOnes, type Slow } from "./slow-samples.ts";

/** Healthy GPUs of one kind differ by some percent (FLARE's underclocked ones by 14 % and more). */
const SLOWER = 1.1;
const GPU_WEIGHT = 0.92;
const LINK_WEIGHT = 0.9;

export const validationTests: Method = {
  id: "validation/tests",
  applies: (job) =>
    (job.validations ?? []).some(({ gemm, transfers: t }) => gemm.length + t.length > 0),
  *run(job) {
    const reports = newestReports(job.validations ?? []);
    const gemms = products(reports);
    const slowGpus = slowGpusOf(gemms);
    const moved = transfers(reports);
    const { links, nics } = slowLinks(moved);
    for (const [rank, list] of slowGpus) yield gpuFinding(reports, rank, list, nics.get(rank));
    for (const [rank, nic] of nics) if (!slowGpus.has(rank)) yield nicFinding(reports, rank, nic);
    for (const link of links) yield linkFinding(reports, link, slowGpus);
    if (slowGpus.size + nics.size + links.length === 0) yield allAlike(reports, gemms, moved);
  },
};

/** Slow at most of the products that it was given; one kind of product alone may be another library's. */
function slowGpusOf(gemms: readonly Comparable<Rank>[]): Map<Rank, Slow<Rank>[]> {
  const slow = new Map<Rank, Slow<Rank>[]>();
  const tests = new Map<Rank, number>();
  for (const comparable of gemms) {
    for (const { who } of comparable.samples) tests.set(who, (tests.get(who) ?? 0) + 1);
    for (const one of slowOnes(comparable, SLOWER))
      slow.set(one.sample.who, [...(slow.get(one.sample.who) ?? []), one]);
  }
  return new Map([...slow].filter(([rank, list]) => 2 * list.length > tests.get(rank)!));
}

function gpuFinding(
  reports: readonly ValidationReport[],
  rank: Rank,
  list: readonly Slow<Rank>[],
  nic: LinkVerdict | undefined,
): NewFinding {
  const ratio = median(list.map((one) => one.ratio));
  const { sample, usualMs } = list[0]!;
  const too = nic ? "; its transfers are slow, too, so that it may be the whole machine" : "";
  const why = `rank ${rank}'s GPU takes ${ratio.toFixed(2)} times as long as its peers' for the same matrix product (${sample.ms.toFixed(2)} ms, usual ${usualMs.toFixed(2)} ms)${too}`;
  const accused = accusation("gpu", [rank], null, "gpu-slow", GPU_WEIGHT, why);
  return finding(reports, [rank], why, accused, { ratio, tests: list.length });
}

function nicFinding(
  reports: readonly ValidationReport[],
  rank: Rank,
  nic: LinkVerdict,
): NewFinding {
  const why = `every transfer to and from rank ${rank} takes ${nic.ratio.toFixed(2)} times as long as the same between others (${nic.ms.toFixed(2)} ms, usual ${nic.usualMs.toFixed(2)} ms), whoever is at the other end: its NIC`;
  const accused = accusation("nic", [rank], null, "network-slow", LINK_WEIGHT, why);
  return finding(reports, [rank], why, accused, { ratio: nic.ratio, tests: nic.tests });
}

function linkFinding(
  reports: readonly ValidationReport[],
  { ranks, ratio, ms, usualMs, tests }: LinkVerdict,
  slowGpus: ReadonlyMap<Rank, unknown>,
): NewFinding {
  const slowEnd = ranks.find((rank) => slowGpus.has(rank));
  const but = slowEnd === undefined ? "" : `; but rank ${slowEnd}'s GPU is slow by itself`;
  const why = `transfers between ${rankWords(ranks)} take ${ratio.toFixed(2)} times as long as the same between others (${ms.toFixed(2)} ms, usual ${usualMs.toFixed(2)} ms)${but}`;
  const weight = slowEnd === undefined ? LINK_WEIGHT : LINK_WEIGHT / 3;
  const [a, b] = ranks as [Rank, Rank];
  const accused = accusation(
    "link",
    ranks,
    [`rank:${a}`, `rank:${b}`],
    "network-slow",
    weight,
    why,
  );
  return finding(reports, ranks, why, accused, { ratio, tests });
}

function allAlike(
  reports: readonly ValidationReport[],
  gemms: readonly Comparable<Rank>[],
  moved: readonly Comparable<unknown>[],
): NewFinding {
  const links = moved.reduce((sum, { samples }) => sum + samples.length, 0);
  const gpus = new Set(gemms.flatMap(({ samples }) => samples.map(({ who }) => who))).size;
  return {
    says: `tests of ${count(gpus, "GPU")} and ${count(links, "transfer")} show none that stands out`,
    weight: 0.5,
    at: reports.slice(0, 4).map(({ file }) => ({ file })),
    data: { gpus, transfers: links },
    accuses: [],
    clears: [],
  };
}

function accusation(
  type: Accusation["type"],
  ranks: readonly Rank[],
  link: Accusation["link"],
  cause: Accusation["cause"],
  weight: number,
  why: string,
): Accusation {
  return { kind: "fail-slow", type, ranks, link, cause, weight, why };
}

function finding(
  reports: readonly ValidationReport[],
  ranks: readonly Rank[],
  says: string,
  accused: Accusation,
  figures: { readonly ratio: number; readonly tests: number },
): NewFinding {
  return {
    says,
    weight: accused.weight,
    at: reports.filter(({ rank }) => ranks.includes(rank)).map(({ file }) => ({ file })),
    data: { ratio: Math.round(figures.ratio * 1000) / 1000, tests: figures.tests },
    accuses: [accused],
    clears: [],
  };
}
