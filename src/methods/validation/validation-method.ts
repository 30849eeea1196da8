/**
 * validation/tests: slow GPUs and links, from tests that the job was asked to run (Greyhound §4.3). Unlike all that is
 * seen of a running job these were made to tell: every GPU did the same product, every link carried the same bytes, and
 * none at the same time as a neighbour.
 */
import { rankWords, count, percent } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Place, Rank } from "../../model/ids.ts";
import type { Method } from "../../model/method.ts";
import type { ValidationReport } from "../../model/validation.ts";
import { dividedBy, type Divided } from "./divided.ts";
import {
  missingRanks,
  newestReports,
  products,
  transfers,
  type Comparable,
  type Link,
} from "./measurements.ts";
import { SLOWER as SLOWER_GPU, slowGpus } from "./slow-gpus.ts";
import { SLOWER as SLOWER_LINK, slowLinks, type LinkVerdict } from "./slow-links.ts";
import type { Slow } from "./slow-samples.ts";
import { largest, thousandths } from "../../base/numbers.ts";

type Said = Pick<NewFinding, "says" | "data">;

const GPU_WEIGHT = 0.92;
/** Slow at one type of number alone: it may be the library's choice of kernel. */
const ONE_TYPE_WEIGHT = 0.5;
const LINK_WEIGHT = 0.9;
/** Compared with ways that it may not take. */
const FAR_WEIGHT = 0.5;

export const validationTests: Method = {
  id: "validation/tests",
  applies: (job) =>
    (job.validations ?? []).some(({ gemm, transfers: t }) => gemm.length + t.length > 0),
  *run(job) {
    const reports = newestReports(job.validations ?? []);
    const missing = missingRanks(reports);
    const lacks = missing.length === 0 ? null : missingWords(missing);
    for (const one of findingsOf(reports))
      yield lacks === null ? one : { ...one, data: { ...one.data, missing }, lacks: [lacks] };
  },
};

function missingWords(missing: readonly Rank[]): string {
  const what = missing.length === 1 ? "its GPU and what it" : "their GPUs and what they";
  return `${rankWords(missing)} took part and left no test report: ${what} received could not be compared`;
}

function* findingsOf(reports: readonly ValidationReport[]): Iterable<NewFinding> {
  const gemms = products(reports);
  const moved = transfers(reports);
  const { slow, atOneType } = slowGpus(gemms);
  const { links, nics } = slowLinks(moved);
  for (const [rank, list] of slow) yield gpuFinding(reports, rank, list, nics.get(rank));
  for (const { rank, dtype, list } of atOneType) yield oneTypeFinding(reports, rank, dtype, list);
  for (const [rank, nic] of nics) if (!slow.has(rank)) yield nicFinding(reports, rank, nic);
  for (const link of links) yield linkFinding(reports, link, slow);

  const areGpusFine = slow.size + atOneType.length === 0;
  const areLinksFine = nics.size + links.length === 0;
  const context = { weight: 0.5, at: placesOf(reports.slice(0, 4)), accuses: [], clears: [] };
  const gpus = areGpusFine ? dividedBy(gemms, SLOWER_GPU, String) : null;
  const ways = areLinksFine
    ? dividedBy(moved, SLOWER_LINK, ({ from, to }) => `${from}>${to}`)
    : null;
  if (gpus) yield { ...gpusDiffer(gpus), ...context };
  if (ways) yield { ...transfersDiffer(ways), ...context };
  if (areGpusFine && areLinksFine && !gpus && !ways)
    yield { ...allAlike(gemms, moved), ...context };
}

function gpuFinding(
  reports: readonly ValidationReport[],
  rank: Rank,
  list: readonly Slow<Rank>[],
  nic: LinkVerdict | undefined,
): NewFinding {
  const ratio = median(list.map((one) => one.ratio));
  const { sample, usualMs } = list[0]!;
  const too = nic ? "; its transfers are slow too, so the whole machine may be slow" : "";
  const why = `rank ${rank}'s GPU${onHost(reports, rank)} takes ${ratio.toFixed(2)} times as long as its peers' for the same matrix product (${sample.ms.toFixed(2)} ms, usual ${usualMs.toFixed(2)} ms)${too}`;
  const accused = accusation("gpu", [rank], null, "gpu-slow", GPU_WEIGHT, why);
  return finding(reports, [rank], why, accused, { ratio, tests: list.length });
}

function oneTypeFinding(
  reports: readonly ValidationReport[],
  rank: Rank,
  dtype: string,
  list: readonly Slow<Rank>[],
): NewFinding {
  const ratio = median(list.map((one) => one.ratio));
  const { sample, usualMs } = list[0]!;
  const why = `rank ${rank}'s GPU${onHost(reports, rank)} takes ${ratio.toFixed(2)} times as long as its peers' for the same matrix product in ${dtype} (${sample.ms.toFixed(2)} ms, usual ${usualMs.toFixed(2)} ms), and is as fast as they are in other types`;
  const accused = accusation("gpu", [rank], null, "gpu-slow", ONE_TYPE_WEIGHT, why);
  return finding(reports, [rank], why, accused, { ratio, tests: list.length });
}

function onHost(reports: readonly ValidationReport[], rank: Rank): string {
  const host = reports.find((report) => report.rank === rank)?.host ?? "";
  return host === "" ? "" : ` on ${host}`;
}

/** "in 2 of 8 tests, ": of what is slow now and then. */
function oftenWords({ rounds }: LinkVerdict): string {
  return rounds ? `in ${rounds.slow} of ${rounds.of} tests ` : "";
}

/** Between machines all is slower than inside one. */
function farWords({ mayBeFar }: LinkVerdict): string {
  return mayBeFar
    ? "; the other transfers are inside a machine, and the machine of the rank without a report is unknown"
    : "";
}

function nicFinding(
  reports: readonly ValidationReport[],
  rank: Rank,
  nic: LinkVerdict,
): NewFinding {
  const why = `every transfer to and from rank ${rank} takes ${oftenWords(nic)}${nic.ratio.toFixed(2)} times as long as the same between others (${nic.ms.toFixed(2)} ms, usual ${nic.usualMs.toFixed(2)} ms), with every peer: its NIC${farWords(nic)}`;
  const weight = nic.mayBeFar ? FAR_WEIGHT : LINK_WEIGHT;
  const accused = accusation("nic", [rank], null, "network-slow", weight, why);
  return finding(reports, [rank], why, accused, { ratio: nic.ratio, tests: nic.tests });
}

function linkFinding(
  reports: readonly ValidationReport[],
  link: LinkVerdict,
  slow: ReadonlyMap<Rank, unknown>,
): NewFinding {
  const { ranks, ratio, ms, usualMs, tests } = link;
  const slowEnd = ranks.find((rank) => slow.has(rank));
  const but = slowEnd === undefined ? "" : `; but rank ${slowEnd}'s GPU is slow by itself`;
  const why = `transfers between ${rankWords(ranks)} take ${oftenWords(link)}${ratio.toFixed(2)} times as long as the same between others (${ms.toFixed(2)} ms, usual ${usualMs.toFixed(2)} ms)${but}${farWords(link)}`;
  const sure = link.mayBeFar ? FAR_WEIGHT : LINK_WEIGHT;
  const weight = slowEnd === undefined ? sure : LINK_WEIGHT / 3;
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
  const own = reports.filter(({ rank }) => ranks.includes(rank));
  // Who left no report stands in those of whom it sent to.
  const partners = reports.filter((report) =>
    report.transfers.some(({ from }) => ranks.includes(from)),
  );
  const hosts = [...new Set(own.map(({ host }) => host))].filter((host) => host !== "");
  return {
    says,
    weight: accused.weight,
    at: placesOf(own.length > 0 ? own : partners),
    data: {
      fact: "tested-slow",
      ratio: thousandths(figures.ratio),
      tests: figures.tests,
      ...(hosts.length > 0 ? { hosts } : {}),
    },
    accuses: [accused],
    clears: [],
  };
}

function placesOf(reports: readonly ValidationReport[]): Place[] {
  return reports.map(({ file }) => ({ file }));
}

/**
 * What is said where no GPU and no link is the exception: that they were tested and are alike, or that they differ.
 */
function gpusDiffer({ fast, slow, ratio, what }: Divided<Rank>): Said {
  const [a, b] = [inOrder(fast), inOrder(slow)];
  return {
    says: `the GPUs of ${rankWords(a)} and those of ${rankWords(b)} were tested: they differ by ${percent(ratio - 1)}, and it is unknown which of them is slow`,
    data: { fact: "tested-different", what, fast: a, slow: b, ratio: thousandths(ratio) },
  };
}

function transfersDiffer({ fast, slow, ratio, what }: Divided<Link>): Said {
  const some = slow
    .slice(0, 3)
    .map(({ from, to }) => `${from}→${to}`)
    .join(", ");
  const more = slow.length > 3 ? ", …" : "";
  return {
    says: `transfers of ${what} were tested, ${slow.length} of ${fast.length + slow.length} slower than the others (${some}${more}): they differ by ${percent(ratio - 1)}, and it is unknown which of them is slow`,
    data: {
      fact: "tested-different",
      what,
      slow: slow.map(({ from, to }) => [from, to]),
      ratio: thousandths(ratio),
    },
  };
}

function allAlike(gemms: readonly Comparable<Rank>[], moved: readonly Comparable<Link>[]): Said {
  const gpus = new Set(gemms.flatMap(({ samples }) => samples.map(({ who }) => who))).size;
  const transfers = moved.reduce((sum, { samples }) => sum + samples.length, 0);
  const links = new Set(moved.flatMap(({ samples }) => samples.map(({ who }) => linkKey(who))))
    .size;
  const tested = [
    ...(gpus > 0 ? [count(gpus, "GPU")] : []),
    ...(links > 0 ? [count(links, "link")] : []),
  ].join(" and ");
  const were = gpus + links === 1 ? "was" : "were";
  const [byGpu, byLink] = [mostApart(gemms), mostApart(moved)];
  // Below what would be called slow; what is noisier than that hides such differences.
  const isAlike = (byGpu ?? 0) < SLOWER_GPU - 1 && (byLink ?? 0) < SLOWER_LINK - 1;
  const apart = [
    ...(byGpu === null ? [] : [`the same product by ${percent(byGpu)}`]),
    ...(byLink === null ? [] : [`the same transfer by ${percent(byLink)}`]),
  ].join(", ");
  const says =
    apart === ""
      ? `${tested} ${were} tested, and there is nothing to compare ${gpus + links === 1 ? "it" : "them"} with`
      : `${tested} were tested${isAlike ? " and are alike" : ""}: none stands out (they differ in ${apart} at most)`;
  return { says, data: { fact: "tested-alike", gpus, links, transfers } };
}

/** How far the slowest lies above the fastest, in the test where that is most; null where each stands alone. */
function mostApart(tests: readonly Comparable<unknown>[]): number | null {
  const apart = tests.flatMap(({ samples }) => {
    const times = samples.filter(({ isGuest }) => isGuest !== true).map(({ ms }) => ms);
    return times.length < 2
      ? []
      : [
          largest(times, 0) /
            -largest(
              times.map((ms) => -ms),
              -Infinity,
            ) -
            1,
        ];
  });
  return apart.length === 0 ? null : largest(apart, 0);
}

function linkKey({ from, to }: Link): string {
  return from < to ? `${from}-${to}` : `${to}-${from}`;
}

function inOrder(ranks: readonly Rank[]): Rank[] {
  return ranks.toSorted((a, b) => a - b);
}
