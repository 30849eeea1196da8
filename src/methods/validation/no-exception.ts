/** What is said where no GPU and no link is the exception: that they were tested and are alike, or that they differ. */
import { largest } from "../../base/numbers.ts";
import { count, rankWords } from "../../base/text.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Divided } from "./divided.ts";
import type { Comparable, Link } from "./measurements.ts";
import { SLOWER as SLOWER_GPU } from "./slow-gpus.ts";
import { SLOWER as SLOWER_LINK } from "./slow-links.ts";

type Said = Pick<NewFinding, "says" | "data">;

export function gpusDiffer({ fast, slow, ratio, what }: Divided<Rank>): Said {
  const [a, b] = [inOrder(fast), inOrder(slow)];
  return {
    says: `the GPUs of ${rankWords(a)} and those of ${rankWords(b)} were tested: they differ by ${percent(ratio - 1)}, which of them is slow cannot be told`,
    data: { fact: "tested-different", what, fast: a, slow: b, ratio: round(ratio) },
  };
}

export function transfersDiffer({ fast, slow, ratio, what }: Divided<Link>): Said {
  const some = slow
    .slice(0, 3)
    .map(({ from, to }) => `${from}→${to}`)
    .join(", ");
  const more = slow.length > 3 ? ", …" : "";
  return {
    says: `transfers of ${what} were tested, ${slow.length} of ${fast.length + slow.length} slower than the others (${some}${more}): they differ by ${percent(ratio - 1)}, which of them is slow cannot be told`,
    data: {
      fact: "tested-different",
      what,
      slow: slow.map(({ from, to }) => [from, to]),
      ratio: round(ratio),
    },
  };
}

export function allAlike(
  gemms: readonly Comparable<Rank>[],
  moved: readonly Comparable<Link>[],
): Said {
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

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
