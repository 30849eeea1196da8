/**
 * From evidence to an accusation. Minder wants one metric for four minutes (§4.4); here several independent kinds of
 * evidence that agree may be quicker, because jitters hit one or two metrics, and faults many (its Table 1).
 */
import { detailed, differs, type Evidence, type EvidenceKind } from "./evidence.ts";

/** Share of the continuity that is asked for when so many kinds agree. */
const NEED_BY_KINDS = [1, 1, 5 / 8, 3 / 8] as const;
/** States are switches, not noise; absence has been waited for already. */
const STATE_NEED = 1 / 4;
/** However long the interval between them is. */
const LEAST_SAMPLES = 3;
/** A fault and the halt that it causes begin together, give or take some samples and a ramp. */
const HALT_SLACK_S = 45;
const LEAST_HALT_S = 30;
const LEAST_ALONE_S = 100;
const LEAST_END_S = 60;

export interface Judged {
  readonly machine: number;
  readonly fromS: number;
  /** null: up to the end. */
  readonly untilS: number | null;
  readonly evidence: readonly Evidence[];
  /** Kinds that agree. */
  readonly kinds: readonly EvidenceKind[];
  /** 0..1 */
  readonly score: number;
  /** Whether it would be accused though the job's slowdown and halt are another's doing. */
  readonly standsAlone?: boolean;
}

/** Nothing but more input and output than others have harms nobody yet: it must last so many times as long. */
const BUSIER_NEED = 2;
/** Whoever writes a checkpoint is busy from the pause on, and often long after it. */
const WRITER_SLACK_S = 60;

/** A GPU without work lowers its clock, cools down and sends nothing: that is one observation, not four. */
const OF_A_GPU: readonly EvidenceKind[] = ["gpu-work", "gpu-memory", "thermal", "link", "network"];

function familyOf(kind: EvidenceKind): EvidenceKind {
  return OF_A_GPU.includes(kind) ? "gpu-work" : kind;
}

/** A halt that ended with the job: the time that there was for evidence. */
export interface EndedHalt {
  readonly fromS: number;
  readonly toS: number;
}

/** `evidence` is of one machine. Null where nothing of it lasts. */
export function judge(
  evidence: readonly Evidence[],
  continuityS: number,
  halts: readonly EndedHalt[] = [],
  pauses: readonly EndedHalt[] = [],
): Judged | null {
  let best: Judged | null = null;
  const counted = evidence.filter((one) => !isWriter(one, pauses));
  for (const anchor of counted) {
    const judged = judgeAround(anchor, counted, continuityS, halts);
    if (judged && (!best || judged.score > best.score)) best = judged;
  }
  return best;
}

/**
 * The same with figures. What over its whole time is like its peers, or unlike to the other side, says nothing: without
 * it the rest is judged again.
 */
export function judgeInDetail(
  evidence: readonly Evidence[],
  ...rules: [number, readonly EndedHalt[], readonly EndedHalt[]]
): Judged | null {
  let counted = evidence;
  for (;;) {
    const judged = judge(counted, ...rules);
    if (!judged) return null;
    const idle = judged.evidence.filter((one) => !differs(detailed(one)));
    if (idle.length === 0) return withDetails(judged);
    counted = counted.filter((one) => !idle.includes(one));
  }
}

export function withDetails(judged: Judged): Judged {
  const evidence = onceEach(judged.evidence.map(detailed));
  const fromS = evidence.reduce((first, one) => Math.min(first, one.fromS), Infinity);
  return { ...judged, evidence, fromS };
}

/** What both kinds of blocks show, by whichever shows it longer. */
function onceEach(evidence: readonly Evidence[]): Evidence[] {
  const keyOf = ({ deviation: { metric, direction } }: Evidence): string =>
    `${metric} ${direction}`;
  const lastsS = ({ fromS, toS }: Evidence): number => toS - fromS;
  return evidence.filter((one) =>
    evidence.every(
      (other) =>
        other === one ||
        keyOf(other) !== keyOf(one) ||
        Math.min(one.toS, other.toS) <= Math.max(one.fromS, other.fromS) ||
        lastsS(other) <= lastsS(one),
    ),
  );
}

/** Nobody is held up by a checkpoint that is on its way; by a stray process, all are. */
function isWriter(
  { isBusier, isHeldUp, kind, fromS }: Evidence,
  pauses: readonly EndedHalt[],
): boolean {
  return (
    isBusier &&
    !(isHeldUp === true && kind === "cpu") &&
    pauses.some(
      (pause) => fromS >= pause.fromS - WRITER_SLACK_S && fromS <= pause.toS + WRITER_SLACK_S,
    )
  );
}

function judgeAround(
  anchor: Evidence,
  evidence: readonly Evidence[],
  continuityS: number,
  halts: readonly EndedHalt[],
): Judged | null {
  const overlapS = (other: Evidence): number =>
    Math.min(anchor.toS, other.toS) - Math.max(anchor.fromS, other.fromS);
  const kindsFor = (needS: number, ordinary: boolean): Evidence[] =>
    evidence.filter((other) => (ordinary || !other.isBusier) && overlapS(other) >= needS);
  const lastsS = anchor.toS - anchor.fromS;
  const leastS = leastOf(anchor);
  let accepted: Evidence[] | null = null;
  // What lasts for a moment beside it agrees with nothing.
  if (anchor.kind === "absence" && anchor.decides)
    accepted = kindsFor(STATE_NEED * continuityS, true);
  else if (
    ((anchor.kind === "state" && anchor.decides) || isLinkOfWorking(anchor, evidence)) &&
    lastsS >= Math.max(STATE_NEED * continuityS, (2 * leastS) / 3)
  )
    accepted = kindsFor(0, true);
  else if (fillsHalt(anchor, halts)) {
    // Processes do not end in the same second: for a minute, freed memory alone is a job that ends.
    const kinds = new Set(evidence.filter((one) => fillsHalt(one, halts)).map(({ kind }) => kind));
    if (kinds.size > 1 || lastsS >= LEAST_ALONE_S) accepted = kindsFor(0, false);
  } else if (endsHalt(anchor, halts)) {
    const ending = evidence.filter((one) => endsHalt(one, halts) && overlapS(one) >= LEAST_END_S);
    if (new Set(ending.map(({ kind }) => familyOf(kind))).size > 1) accepted = kindsFor(0, false);
  }
  // That the job was held up from then on is one more observation that agrees.
  const more = anchor.isHeldUp === true ? 1 : 0;
  for (let kinds = 3; kinds >= 1 && !accepted; kinds--) {
    const isMerelyBusy = anchor.isBusier && more === 0;
    const shareOfIt = NEED_BY_KINDS[kinds]! * (isMerelyBusy ? BUSIER_NEED : 1);
    const needS = Math.max(shareOfIt * continuityS, leastS);
    if (lastsS < needS) continue;
    const agreeing = kindsFor(needS, kinds === 1 || more === 1);
    const deciding = agreeing.filter(({ decides }) => decides);
    const families = new Set(deciding.map(({ kind }) => familyOf(kind))).size;
    if (families > 0 && families + more >= kinds) accepted = agreeing;
  }
  if (!accepted || !accepted.includes(anchor)) return null;
  // Whatever deviated meanwhile belongs to it, however short.
  const all = evidence.filter((other) => accepted.includes(other) || overlapS(other) > 0);
  const kinds = [...new Set(accepted.map(({ kind }) => kind))];
  const isOpen = accepted.some((one) => one.isOpen);
  return {
    machine: anchor.machine,
    fromS: all.reduce((first, one) => Math.min(first, one.fromS), Infinity),
    untilS: isOpen ? null : accepted.reduce((last, one) => Math.max(last, one.toS), 0),
    evidence: [...all].sort((a, b) => b.strength - a.strength),
    kinds,
    score: scoreOf(accepted, kinds.length, lastsS / continuityS),
  };
}

/** GPUs without work turn their links down; one that works and has a narrow or slow link is as good as a state. */
function isLinkOfWorking({ kind, fromS, toS }: Evidence, evidence: readonly Evidence[]): boolean {
  const isIdle = (other: Evidence): boolean =>
    (other.kind === "gpu-work" || other.kind === "gpu-memory" || other.kind === "absence") &&
    other.fromS < toS &&
    other.toS > fromS;
  return kind === "link" && !evidence.some(isIdle);
}

/** Nobody can be unlike for longer than the job was there: what began with the halt and lasted as long is enough. */
function fillsHalt(one: Evidence, halts: readonly EndedHalt[]): boolean {
  const { fromS, toS } = one;
  return halts.some(
    (halt) =>
      lastsToEnd(one, halt) &&
      Math.abs(fromS - halt.fromS) <= HALT_SLACK_S &&
      toS - fromS >= Math.max(LEAST_HALT_S, leastOf(one), 0.6 * (halt.toS - halt.fromS)),
  );
}

/** A checkpoint right before it makes the halt look longer: what began in its midst and lasted to its end. */
function endsHalt(one: Evidence, halts: readonly EndedHalt[]): boolean {
  return halts.some(
    (halt) =>
      lastsToEnd(one, halt) &&
      one.fromS >= halt.fromS - HALT_SLACK_S &&
      one.toS - one.fromS >= Math.max(LEAST_END_S, leastOf(one)),
  );
}

/** Processes do not end in the same second, and scrapes are an interval apart: one or two of them tell nothing. */
export function leastOf({ episode }: Evidence): number {
  return LEAST_SAMPLES * (episode?.view.grid.stepS ?? 0);
}

function lastsToEnd({ toS, decides, isBusier, episode }: Evidence, halt: EndedHalt): boolean {
  const stepS = episode?.view.grid.stepS ?? 0;
  return decides && !isBusier && halt.toS - toS <= Math.max(HALT_SLACK_S / 2, stepS);
}

/** By judgement: more kinds, farther out, longer. */
function scoreOf(accepted: readonly Evidence[], kinds: number, lasts: number): number {
  const strongest = accepted.reduce((most, { strength }) => Math.max(most, strength), 0);
  const score =
    0.55 +
    0.12 * Math.min(2, kinds - 1) +
    0.1 * Math.min(1.5, Math.max(0, strongest - 1)) +
    0.04 * Math.min(2, Math.max(0, lasts - 1));
  return Math.min(0.97, score);
}
