/**
 * All ranks alike, and none slower than before: peers and history show nothing. But iterations that go to garbage
 * collection or to waiting for data by such shares are no healthy job's, whoever its peers are.
 */
import { count } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { HostTimes } from "./host-times.ts";
import { percent, round, shareOf, WORDS } from "./shares.ts";

/** Loaders are waited for a little in many jobs that nobody would call ill; collections hardly ever. */
const TOO_MUCH = { "garbage-collection": 0.3, dataloader: 0.4 } as const;
type Habit = keyof typeof TOO_MUCH;
/** No peer and no earlier time to compare with. */
const WEIGHT = 0.6;

export function* commonHabits(times: readonly HostTimes[]): Iterable<NewFinding> {
  for (const habit of Object.keys(TOO_MUCH) as Habit[]) {
    const shares = times.map((one) => lastingShare(one, habit));
    const typical = median(shares);
    if (typical >= TOO_MUCH[habit]) yield habitFinding(times, habit, shares, typical);
  }
}

/** In both halves of what was seen: one long wait (a new epoch, a cold cache) is no habit. */
function lastingShare(times: HostTimes, habit: Habit): number {
  const middle = Math.ceil((times.durationMs.length + 1) / 2);
  return Math.min(shareOf(times, habit, 1, middle), shareOf(times, habit, middle));
}

function habitFinding(
  times: readonly HostTimes[],
  habit: Habit,
  shares: readonly number[],
  typical: number,
): NewFinding {
  const concerned = times.filter((_, i) => shares[i]! >= TOO_MUCH[habit]);
  const ranks = concerned.map(({ rank }) => rank);
  const call = concerned[0]?.name[habit] ?? "";
  const who = times.length === 1 ? `rank ${times[0]!.rank} spends` : "the ranks, all alike, spend";
  const of = times.length === 1 ? "its" : "their";
  const some =
    ranks.length < times.length ? ` (${ranks.length} of ${count(times.length, "rank")})` : "";
  const why = `${who} ${percent(typical)} of ${of} iterations in ${WORDS[habit]}${call === "" ? "" : ` (${call})`}${some}: a healthy job spends below ${percent(TOO_MUCH[habit])}`;
  return {
    says: why,
    weight: WEIGHT,
    at: concerned.slice(0, 4).map(({ file }) => ({ file })),
    data: { fact: "python-time", purpose: habit, share: round(typical), ranks },
    accuses: [
      {
        kind: "regression",
        type: habit === "dataloader" ? "data" : "code",
        ranks,
        link: null,
        cause: habit,
        weight: WEIGHT,
        why,
      },
    ],
    clears: [],
  };
}
