/**
 * When is a verdict right? The first suspect must be the truth's component, with the truth's cause; of a healthy job
 * nobody may be accused. Where the files that are left cannot tell two words apart, both count (ACCEPTED); where they cannot
 * tell the members of a group apart, the group counts (isAllThatCanBeNamed); without operators a slow machine counts for
 * its rank. "exact" and "word" are without these.
 */
import type { Cause } from "../../src/model/cause.ts";
import type { Suspect, Verdict } from "../../src/model/verdict.ts";
import type { EvidenceKind, Scenario, Truth } from "./scenarios/scenario.ts";

export interface Score {
  /** The kind of verdict, the component, the machine that it is on, and the cause. */
  readonly kind: boolean;
  readonly component: boolean;
  readonly machine: boolean;
  readonly cause: boolean;
  /** The cause to the letter, without ACCEPTED. */
  readonly word: boolean;
  /** The component alone, not a group that it is in. */
  readonly exact: boolean;
  /** Component and cause: what the tables count. */
  readonly right: boolean;
  /** Somebody is accused who did nothing; of a healthy job, anybody or anything. */
  readonly accused: boolean;
}

interface Seen {
  /** Whether the culprit left something of the kind, and it was given. */
  readonly has: (kind: EvidenceKind) => boolean;
  readonly truth: Truth;
}

interface Acceptance {
  readonly causes: readonly Cause[];
  readonly as: readonly Cause[];
  readonly when: (seen: Seen) => boolean;
  readonly because: string;
}

export const ACCEPTED: readonly Acceptance[] = [
  {
    causes: ["dataloader", "storage"],
    as: ["cpu-stall"],
    when: ({ has, truth }) => !has("stacks") || truth.kind === "fail-slow",
    because: "without a stack a CPU that waits for data looks as one that computes",
  },
  {
    causes: ["storage"],
    as: ["dataloader"],
    when: () => true,
    because: "a loader that waits for storage is both",
  },
  {
    causes: ["gpu-error", "gpu-memory", "host-memory", "user-program", "numerical", "process-gone"],
    as: ["process-gone", "process-stopped"],
    when: ({ has }) => !has("logs"),
    because: "what a process died of, and that it died, only logs say",
  },
  {
    causes: ["process-stopped"],
    as: ["process-gone"],
    when: ({ has, truth }) => !has("logs") || truth.ranks.length > 1,
    because:
      "without its log, or of a machine that does not answer, nobody can tell whether the process still exists",
  },
];

/** Without logs a process that died is one that the others wait for. */
const isKind = (verdict: Verdict, { truth, has }: Seen): boolean =>
  verdict.kind === truth.kind ||
  (truth.kind === "crash" && verdict.kind === "hang" && !has("logs")) ||
  // Monitoring alone sees a machine, not what the job does.
  (verdict.kind === "faulty-machine" && !has("logs") && !has("operators"));

export function scoreOf(
  scenario: Scenario,
  verdict: Verdict,
  kinds: readonly EvidenceKind[],
): Score {
  const [first] = verdict.suspects;
  const { truths } = scenario;
  if (truths.length === 0) {
    const isClear = first === undefined && ["healthy", "undetermined"].includes(verdict.kind);
    return {
      kind: isClear,
      component: isClear,
      machine: isClear,
      cause: isClear,
      word: isClear,
      exact: isClear,
      right: isClear,
      accused: !isClear,
    };
  }
  const scores = accountable(truths).map((truth) =>
    ofTruth(scenario, truth, verdict, first, kinds),
  );
  return (
    scores.find(({ right }) => right) ?? scores.find(({ component }) => component) ?? scores[0]!
  );
}

/** Of two slow-downs either may come first; beside a stop only the stop is the answer. */
function accountable(truths: readonly Truth[]): readonly Truth[] {
  return truths[0]!.kind === "fail-slow" ? truths : truths.slice(0, 1);
}

function ofTruth(
  scenario: Scenario,
  truth: Truth,
  verdict: Verdict,
  first: Suspect | undefined,
  kinds: readonly EvidenceKind[],
): Score {
  const has = (kind: EvidenceKind): boolean =>
    kinds.includes(kind) &&
    scenario.lost?.kind !== kind &&
    (kind !== "stacks" || scenario.stacks !== null);
  const seen = { has, truth };
  const machine = first !== undefined && isMachine(first, truth);
  const component =
    first !== undefined &&
    (isComponent(scenario, first, truth) ||
      isAllThatCanBeNamed(scenario, first, truth, has) ||
      // Who was late is told by operators only; the rest of a slow-down's evidence is of machines.
      (machine && !has("operators") && truth.kind === "fail-slow"));
  const word = first !== undefined && first.cause === truth.cause;
  const cause =
    word ||
    (first !== undefined &&
      ACCEPTED.some(
        ({ causes, as, when }) =>
          causes.includes(truth.cause) && as.includes(first.cause) && when(seen),
      ));
  return {
    kind: isKind(verdict, seen),
    component,
    machine,
    cause,
    word,
    exact: component && (first?.ranks.length ?? 0) <= Math.max(2, truth.ranks.length),
    right: component && cause,
    accused: first !== undefined && !machine && !component,
  };
}

function isMachine({ machine, name, type }: Suspect, truth: Truth): boolean {
  if (truth.machine === null) return false;
  return machine === truth.machine || (type === "machine" && name === truth.machine);
}

/** The share of a job that a stuck or slow group may have, and still count. */
const NARROW = 1 / 8;

function isComponent(scenario: Scenario, suspect: Suspect, truth: Truth): boolean {
  const { ranks, link, name } = suspect;
  const isSame = (of: readonly number[]): boolean =>
    of.length === ranks.length && of.every((rank) => ranks.includes(rank));
  if (truth.type === "link")
    return isSame(truth.ranks) || (link !== null && truth.link!.every((end) => link.includes(end)));
  if (truth.type === "switch") return name === truth.name || isSame(truth.ranks);
  // A machine, or one of its ranks where each is named for itself.
  if (truth.ranks.length > 1)
    return isMachine(suspect, truth) && ranks.every((rank) => truth.ranks.includes(rank));
  return isSame(truth.ranks);
}

/**
 * Members of a collective leave it together. Where one is stuck or slow inside it, they are all that its operators can name:
 * in a hang without timing, or by the network; in a slow ring without the counters of NICs. Counted where the group is
 * small; the tables say how often one component was named.
 */
function isAllThatCanBeNamed(
  scenario: Scenario,
  { ranks }: Suspect,
  truth: Truth,
  has: (kind: EvidenceKind) => boolean,
): boolean {
  if (truth.ranks.length > 2 || !truth.ranks.every((rank) => ranks.includes(rank))) return false;
  if (ranks.length > Math.max(16, NARROW * scenario.spec.gpus)) return false;
  if (truth.cause === "network-hang") return true;
  if (truth.cause === "gpu-hang") return !scenario.timing && !has("metrics");
  return truth.cause === "network-slow" && !has("metrics");
}
