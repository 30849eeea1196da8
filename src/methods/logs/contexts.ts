/** Causes that no single line says: what a timeout means before training, and ranks that went different ways. */
import type { FaultMatch } from "../../library/matcher.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { Stage } from "../../model/log-report.ts";
import type { ContextCause } from "./cause.ts";
import type { SignatureGroup } from "./signature-groups.ts";

/** PyTorch's watchdog says that somebody waited too long, or how far it was when that happened. */
const WAITED = /^torch\.watchdog\.(?:timeout|barrier|worknccl|last-work)/;
const LAST_WORK = "torch.watchdog.last-work";
const TIMEOUT_WEIGHT = 0.55;
const STEP_WEIGHT = 0.6;
const STUCK_WEIGHT = 0.4;
const STARTED_COLLECTIVES = 20;
const RANK = /\brank\D{0,3}([\d/,\s]{1,200}\d|\d)\]/i;

export function contextCauses(
  digest: LogDigest,
  groups: readonly SignatureGroup[],
  known: readonly (FaultMatch | null)[],
  about: { readonly stage: Stage; readonly hasRoot: boolean; readonly hosts: number },
): ContextCause[] {
  const waits = groups.filter(({ record }) => WAITED.test(record.id));
  if (waits.length === 0) return [];
  const first = digest.kept[waits[0]!.lines[0]!]!;
  const at = { file: digest.files[first.file]!.name, line: first.line, text: first.text };
  const causes: ContextCause[] = [];
  const { hasRoot, hosts } = about;
  const isBeforeTraining =
    (about.stage === "launch" || about.stage === "load") &&
    digest.iterations.every(({ iteration }) => iteration.length === 0);
  const behind = ranksBehind(digest, known);
  // A rank that has issued many collectives is past the preparation, whether or not iterations are reported.
  const isStarted = mostIssued(known) >= STARTED_COLLECTIVES;
  const isStuck = !hasRoot && isStuckTogether(digest, known);
  if (isStuck) {
    causes.push({
      weight: STUCK_WEIGHT,
      cause: {
        category: hosts > 1 ? "hardware.network" : "platform",
        cause: "network-hang",
        signature: "context.first-operator",
        title: "no operator between the ranks ever completed, though all had issued it",
        role: "root",
        owner: hosts > 1 ? "network" : "platform",
        meaning: `All ranks wait in their first operator, so none keeps the others waiting: the connection between their ${hosts > 1 ? "machines" : "GPUs"} carries no data.`,
        action:
          "Run all_reduce_perf of nccl-tests on the same GPUs; on one machine with NCCL_P2P_DISABLE=1 as well (IOMMU and ACS settings break peer-to-peer access), on several with NCCL_IB_DISABLE=1.",
        falseFriends: ["Ranks that disagree about the group's size wait in the same way."],
        at,
        places: [at],
        nodes: [],
        ranks: [],
        captures: {},
      },
    });
  }
  if (isBeforeTraining && !isStarted && !hasRoot && !isStuck) {
    causes.push({
      weight: TIMEOUT_WEIGHT,
      cause: {
        category: "user.config",
        cause: "user-config",
        signature: "context.timeout-before-training",
        title: "ranks waited for one that was still preparing data or loading",
        role: "root",
        owner: "user",
        meaning:
          "A collective timed out before the first iteration, and nothing says that anything broke: one rank was busy with work that the others do not share (tokenizing, building an index, downloading, loading a checkpoint) for longer than the timeout.",
        action:
          "Prepare the data before the job, or raise the timeout: torch.distributed.init_process_group(timeout=…), ddp_timeout in Transformers. Look at what the rank that is not in the list of timeouts was doing.",
        falseFriends: [
          "A network that passes small messages but not large ones looks the same: run all_reduce_perf on the same nodes.",
        ],
        at,
        places: [at],
        nodes: [],
        ranks: [],
        captures: {},
      },
    });
  }
  if (behind && (isStarted || !isBeforeTraining)) {
    causes.push({
      weight: STEP_WEIGHT,
      cause: {
        category: "user.program",
        cause: "cpu-stall",
        signature: "context.ranks-out-of-step",
        title: `rank ${behind.ranks.join(", ")} issued fewer collectives than the others`,
        role: "root",
        owner: "user",
        meaning: `The last work that was enqueued is ${behind.least} on rank ${behind.ranks.join(", ")} and ${behind.most} on others: it took another path through the program (skipped a batch, left a loop earlier), or was stuck in its own code, while the others wait for it.`,
        action:
          "Look for code before a collective that depends on the rank's data: skipped samples, conditional losses, uneven data loaders. py-spy dump --pid PID on that rank shows where it is.",
        falseFriends: [
          "A rank that hangs in its data loader or in storage is behind, too: look at its stack before blaming the program.",
        ],
        at: behind.at,
        places: [behind.at],
        nodes: [],
        ranks: behind.ranks,
        captures: {},
      },
    });
  }
  const missing = behind ? null : ranksWithoutTimeout(digest, known);
  if (missing) {
    const who = missing.length === 1 ? `rank ${missing[0]}` : `ranks ${missing.join(", ")}`;
    causes.push({
      weight: MISSING_WEIGHT,
      cause: {
        category: "user.program",
        cause: "cpu-stall",
        signature: "context.rank-without-timeout",
        title: `${who} did not report a timeout: the others wait for it`,
        role: "root",
        owner: "user",
        meaning: `Every other rank's watchdog ran out of time. A rank that does not wait in a collective has no timeout: ${who} was stuck in its own code, or was gone.`,
        action: `Look at ${who} first: py-spy dump --pid PID while it hangs, its node's dmesg, its storage and data loader.`,
        falseFriends: [
          "A log that is missing or cut off looks the same as a rank that did not wait.",
        ],
        at,
        places: [at],
        nodes: [],
        ranks: missing,
        captures: {},
      },
    });
  }
  return causes;
}

/** The highest number of a collective that anybody waits in or has issued. */
function mostIssued(known: readonly (FaultMatch | null)[]): number {
  return known.reduce((most, match) => {
    const seq = match && WAITED.test(match.record.id) ? Number(match.captures["seq"] ?? 0) : 0;
    return seq > most ? seq : most;
  }, 0);
}

/** "last enqueued NCCL work: 1, last completed NCCL work: -1" */
const PROGRESS =
  /last enqueued (?:NCCL )?work: (-?\d{1,15})[,.]? last completed (?:NCCL )?work: (-?\d{1,15})/i;

/**
 * Whether all who tell have issued the same operator and none has ever completed one: nobody is late then, and what does
 * not work is the way between them.
 */
function isStuckTogether(digest: LogDigest, known: readonly (FaultMatch | null)[]): boolean {
  const issued = new Set<string>();
  const ranks = new Set<number>();
  for (const [i, match] of known.entries()) {
    const progress =
      match && WAITED.test(match.record.id) ? PROGRESS.exec(digest.kept[i]!.text) : null;
    if (!progress) continue;
    if (Number(progress[2]) > 0) return false;
    issued.add(progress[1]!);
    const { stream, text } = digest.kept[i]!;
    for (const rank of ranksIn(text, digest.streams[stream]!.rank)) ranks.add(rank);
  }
  return issued.size === 1 && ranks.size >= 2 && Math.max(...ranks) === ranks.size - 1;
}

const MISSING_WEIGHT = 0.4;
const LEAST_RANKS = 8;
const MOST_MISSING = 0.05;
const TIMEOUT = "torch.watchdog.timeout";

/** Ranks between 0 and the highest that never said that they timed out, where nearly all did. */
function ranksWithoutTimeout(
  digest: LogDigest,
  known: readonly (FaultMatch | null)[],
): number[] | null {
  const said = new Set<number>();
  known.forEach((match, i) => {
    if (match?.record.id !== TIMEOUT) return;
    const { stream, text } = digest.kept[i]!;
    for (const rank of ranksIn(text, digest.streams[stream]!.rank)) said.add(rank);
  });
  let top = -1;
  for (const rank of said) top = Math.max(top, rank);
  for (const { rank } of digest.streams) if (rank !== null && rank < 1e6) top = Math.max(top, rank);
  const missing: number[] = [];
  for (let rank = 0; rank <= top && missing.length <= said.size; rank++)
    if (!said.has(rank)) missing.push(rank);
  const isFew = missing.length > 0 && missing.length <= Math.max(1, MOST_MISSING * (top + 1));
  return isFew && said.size >= LEAST_RANKS - 1 ? missing : null;
}

interface Behind {
  readonly ranks: number[];
  readonly least: number;
  readonly most: number;
  readonly at: { readonly file: string; readonly line: number; readonly text: string };
}

/** Sequence numbers of the last enqueued collective tell the rank that did not come from those that wait for it. */
function ranksBehind(digest: LogDigest, known: readonly (FaultMatch | null)[]): Behind | null {
  const last = new Map<number, { seq: number; kept: number }>();
  known.forEach((match, i) => {
    if (!match?.record.id.startsWith(LAST_WORK)) return;
    const seq = Number(match.captures["seq"]);
    if (!Number.isFinite(seq) || seq < 0) return;
    const { stream, text } = digest.kept[i]!;
    for (const rank of ranksIn(text, digest.streams[stream]!.rank))
      last.set(rank, { seq, kept: i });
  });
  if (last.size < 2) return null;
  const entries = [...last];
  const most = entries.reduce((top, [, { seq }]) => Math.max(top, seq), 0);
  const behind = entries.filter(([, { seq }]) => seq < most);
  // Half and half says nothing about who is wrong.
  if (behind.length === 0 || 2 * behind.length >= entries.length) return null;
  const { kept, seq } = behind[0]![1];
  const { file, line, text } = digest.kept[kept]!;
  return {
    ranks: behind
      .map(([rank]) => rank)
      .sort((a, b) => a - b)
      .slice(0, 16),
    least: seq,
    most,
    at: { file: digest.files[file]!.name, line, text },
  };
}

/** "[Rank 0/2/3]" stands for several. */
function ranksIn(text: string, rank: number | null): number[] {
  const named = RANK.exec(text)?.[1]?.match(/\d+/g)?.map(Number);
  return named ?? (rank === null ? [] : [rank]);
}
