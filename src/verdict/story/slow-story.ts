/**
 * The story of a slow-down: from a rank that only waits, hop by hop, to the one that the verdict names (Holmes §4.3).
 * The verdict was reached by more evidence than one iteration; a walk that ends elsewhere is no proof of it, and is
 * not shown as one: then other victims and iterations are tried, and if none leads there, that is said.
 */
import { count, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Story } from "../../model/picture.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import {
  FetchedRanks,
  mates,
  MOST_BARS,
  spread,
  walkerOf,
  type OperatorsAsked,
} from "./fetched-ranks.ts";
import type { RankCalls } from "./rank-calls.ts";
import { isNetwork, who } from "./story-words.ts";
import { storyOf } from "./walk-story.ts";
import { storyIterations, type SlowSpan, type StoryIterations } from "./story-iterations.ts";
import { walk, type Walk, type Walker } from "./walk.ts";

export interface StoryInput extends OperatorsAsked {
  readonly job: Job;
  readonly verdict: Verdict;
  readonly span: SlowSpan;
  /** Ranks whose operators can be had. */
  readonly ranks: readonly Rank[];
}

export interface ToldStory {
  readonly story: Story | null;
  readonly lacks: readonly string[];
  readonly iterations: StoryIterations | null;
}

/** Ranks that are looked at for how long they wait, and those of them that a walk is begun at. */
const CANDIDATES = 24;
const VICTIMS = 8;
/** Operators on the way that show how far the fault reaches; more show no more. */
const ENOUGH_HOPS = 2;

export async function slowStory(input: StoryInput): Promise<ToldStory> {
  const { job, verdict, span } = input;
  const nothing = (why: string): ToldStory => ({ story: null, lacks: [why], iterations: null });
  const blamed = [...new Set(verdict.suspects.flatMap(({ ranks }) => ranks))];
  if (blamed.length === 0)
    return nothing("No story: the verdict names no rank or link that the waiting could lead to.");
  if (input.ranks.length < 2)
    return nothing("No story: no operators with times that show who waits for whom.");
  const known = new FetchedRanks(input);
  const near = mates(job, blamed);
  const candidates = candidatesOf(input.ranks, near, new Set(blamed));
  const seen = (await known.fetch([...blamed.slice(0, MOST_BARS), ...candidates])).filter(
    (one) => one !== null,
  );
  const iterations = storyIterations(seen, span);
  if (iterations.shown.length === 0)
    return nothing("No story: the operators at hand hold no slow iteration that most ranks share.");
  const walker = walkerOf(job, known, blamed, iterations.healthy, input.mostMembers);
  const walks: { readonly walked: Walk; readonly suspect: Suspect }[] = [];
  const elsewhere: string[] = [];
  const isEnough = (): boolean => walks.some(({ walked }) => walked.hops.length >= ENOUGH_HOPS);
  for (const iteration of iterations.shown) {
    if (isEnough()) break;
    for (const victim of await victimsOf(walker, candidates, near, iteration)) {
      const walked = await walk(walker, victim, iteration);
      const suspect = walked ? suspectAt(walked, verdict) : undefined;
      if (walked && suspect) walks.push({ walked, suspect });
      else elsewhere.push(walked ? endWords(job, walked) : "");
      if (isEnough()) break;
    }
  }
  const [best] = walks.toSorted((a, b) => b.walked.hops.length - a.walked.hops.length);
  if (!best) return { story: null, lacks: [lackOf(elsewhere)], iterations };
  const { walked, suspect } = best;
  const story = await storyOf(job, verdict, suspect, known, iterations.healthy, walked);
  return { story, lacks: [], iterations };
}

/** Far from the suspects first: spread over those that share no group with them, then over the others. */
function candidatesOf(
  ranks: readonly Rank[],
  near: ReadonlySet<Rank>,
  blamed: ReadonlySet<Rank>,
): Rank[] {
  const far = ranks.filter((rank) => !near.has(rank));
  const close = ranks.filter((rank) => near.has(rank) && !blamed.has(rank));
  return [...spread(far, CANDIDATES), ...spread(close, CANDIDATES)].slice(0, CANDIDATES);
}

/** Those that wait most, far ones first; some of those that wait least, too, in case the others wait for something else. */
async function victimsOf(
  walker: Walker,
  candidates: readonly Rank[],
  near: ReadonlySet<Rank>,
  iteration: number,
): Promise<RankCalls[]> {
  const calls = (await walker.calls(candidates)).filter((one) => one !== null);
  return calls
    .filter((one) => one.has(iteration))
    .map((one) => ({ one, waitsMs: one.waits(iteration, Infinity)[0]?.excessMs ?? 0 }))
    .filter(({ waitsMs }) => waitsMs > 0)
    .sort(
      (a, b) =>
        Number(near.has(a.one.rank)) - Number(near.has(b.one.rank)) || b.waitsMs - a.waitsMs,
    )
    .map(({ one }) => one)
    .filter((_, k, all) => k < VICTIMS - 2 || k >= all.length - 2);
}

/** Whom of the verdict it ends at, in the way that the verdict says. */
function suspectAt({ end }: Walk, { suspects }: Verdict): Suspect | undefined {
  if (end.by === "own")
    return suspects.find((one) => !isNetwork(one) && one.ranks.includes(end.rank));
  const there = new Set(end.ranks);
  const takesPart = (rank: Rank): boolean => there.has(rank);
  // A link is seen where both its ends take part; of other devices one rank is enough.
  return suspects.find(
    (one) =>
      isNetwork(one) &&
      (one.type === "link" ? one.ranks.every(takesPart) : one.ranks.some(takesPart)),
  );
}

function endWords(job: Job, { end }: Walk): string {
  return end.by === "own"
    ? `to ${who(job, end.rank)}`
    : `to communication among ${rankWords(end.ranks)}`;
}

function lackOf(elsewhere: readonly string[]): string {
  const ends = [...new Set(elsewhere.filter((one) => one !== ""))];
  const tried = `${count(elsewhere.length, "wait chain")} of slow iterations`;
  if (ends.length === 0)
    return `No story: ${tried} led to no cause, so the verdict rests on the findings alone.`;
  return `No story: ${tried} led ${ends.slice(0, 3).join(", ")} and not to the suspect. Single iterations are weaker evidence than the findings, which compare many.`;
}
