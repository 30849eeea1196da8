/** When is a verdict on a recording right? */
import { groupBy } from "../../src/base/group-by.ts";
import type { SuspectType } from "../../src/model/finding.ts";
import type { Verdict } from "../../src/model/verdict.ts";
import type { Truth } from "./truth.ts";

export interface Judged {
  readonly kind: boolean;
  /** The kind, and exactly the guilty ranks. */
  readonly suspects: boolean;
  /** And for each a true cause. */
  readonly right: boolean;
  /** The guilty ranks, with the true cause as one of two that the answer leaves open. */
  readonly open: boolean;
  /** Exactly the guilty ranks, whatever the verdict says they did. */
  readonly ranks: boolean;
}

export type Answer = Pick<Verdict, "kind" | "suspects">;

/** What all ranks share: where the truth names nobody, these name nobody either. */
const SHARED: readonly SuspectType[] = ["code", "config", "data", "storage"];

export function judge({ kind: said, suspects }: Answer, truth: Truth): Judged {
  const isNobodys = truth.faults.length > 0 && truth.ranks.length === 0;
  const named = suspects.filter(({ type }) => !(isNobodys && SHARED.includes(type)));
  const blamed = [...new Set(named.flatMap(({ ranks }) => ranks))].sort((a, b) => a - b);
  const kind = truth.kinds.includes(said);
  // Code, storage and links may be blamed without a rank: in a healthy job that is an accusation, too.
  const ranks =
    blamed.join() === truth.ranks.join() && (truth.faults.length > 0 || suspects.length === 0);
  const isCause = suspects.every((suspect) =>
    truth.faults.some(
      (fault) =>
        fault.causes.includes(suspect.cause) &&
        (fault.ranks.length === 0 || fault.ranks.some((rank) => suspect.ranks.includes(rank))),
    ),
  );
  // Who is slow the files of some recordings do not tell; then that it is slow is all that can be said.
  const isSaid = suspects.length > 0 || truth.faults.length === 0 || truth.kind === "fail-slow";
  const right = kind && ranks && isCause && isSaid;
  const isOpen = !right && kind && ranks && isSaid && leavesOpen(suspects, truth);
  return { kind, ranks, suspects: kind && ranks, right, open: isOpen };
}

/** Whether suspects come in pairs of the same ranks, and one of each has a true cause (CONTRACT.md). */
function leavesOpen(suspects: Answer["suspects"], { faults }: Truth): boolean {
  const pairs = [...groupBy(suspects, ({ ranks }) => ranks.join()).values()];
  return pairs.every((own) =>
    own.some(({ cause, ranks }) =>
      faults.some(
        (fault) => fault.causes.includes(cause) && fault.ranks.some((rank) => ranks.includes(rank)),
      ),
    ),
  );
}

/** Part of the files may not tell: "silent" is nobody accused, and nothing false said. */
export type PartJudged = "right" | "silent" | "wrong";

export function judgePart(answer: Answer, truth: Truth, part: "dumps" | "logs"): PartJudged {
  const kinds = [
    ...truth.kinds,
    // Without logs a process that died is one that the others wait for.
    ...(truth.kind === "crash" && part === "dumps" ? ["hang"] : []),
    ...(truth.kind === "healthy" ? ["undetermined"] : []),
  ];
  // What it died of only logs tell, what a CPU did only stacks: causes do not count.
  if (judge(answer, { ...truth, kinds }).suspects) return "right";
  const isNobody = answer.suspects.length === 0;
  return isNobody && ["undetermined", ...kinds].includes(answer.kind) ? "silent" : "wrong";
}
