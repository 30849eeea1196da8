/** Causes that no single line says: what a timeout means before training, and ranks that went different ways. */
import type { FaultMatch } from "../../library/matcher.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { Stage } from "../../model/log-report.ts";
import type { ContextCause } from "./cause.ts";
import type { SignatureGroup } from "./signature-groups.ts";

/** PyTorch's watchdog, whatever it says: somebody waited too long. */
const WATCHDOG = "torch.watchdog.";
const LAST_WORK = "torch.watchdog.last-work";
const TIMEOUT_WEIGHT = 0.55;
const STEP_WEIGHT = 0.6;
const STARTED_COLLECTIVES = 20;
const RANK = /\brank\D{0,3}([\d/,\s]{1,200}\d|\d)\]/i;

export function contextCauses(
  digest: LogDigest,
  groups: readonly SignatureGroup[],
  known: readonly (FaultMatch | null)[],
  stage: Stage,
): ContextCause[] {
  const waits = groups.filter(({ record }) => record.id.startsWith(WATCHDOG));
  if (waits.length === 0) return [];
  const first = digest.kept[waits[0]!.lines[0]!]!;
  const at = { file: digest.files[first.file]!.name, line: first.line, text: first.text };
  const causes: ContextCause[] = [];
  const isBeforeTraining =
    (stage === "launch" || stage === "load") &&
    digest.iterations.every(({ iteration }) => iteration.length === 0);
  const behind = ranksBehind(digest, known);
  // Whoever has issued many collectives is past the preparation, whether or not iterations are reported.
  const isStarted = (behind?.most ?? 0) >= STARTED_COLLECTIVES;
  if (isBeforeTraining && !isStarted && groups.every(({ record }) => record.role !== "root")) {
    causes.push({
      weight: TIMEOUT_WEIGHT,
      cause: {
        category: "user.config",
        signature: "context.timeout-before-training",
        title: "ranks waited for one that was still preparing data or loading",
        role: "root",
        owner: "user",
        meaning:
          "A collective timed out before the first iteration, and nothing says that anything broke: one rank was busy with work that the others do not share (tokenizing, building an index, downloading, loading a checkpoint) for longer than the timeout.",
        action:
          "Prepare the data before the job, or raise the timeout: torch.distributed.init_process_group(timeout=…), ddp_timeout in Transformers. Look at what the rank that is not in the list of timeouts was doing.",
        falseFriends: [
          "A network that lets small messages pass and large ones not looks the same: run all_reduce_perf on the same nodes.",
        ],
        at,
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
        signature: "context.ranks-out-of-step",
        title: `rank ${behind.ranks.join(", ")} issued fewer collectives than the others`,
        role: "root",
        owner: "user",
        meaning: `The last work that was enqueued is ${behind.least} on rank ${behind.ranks.join(", ")} and ${behind.most} on others: it took another way through the program (skipped a batch, left a loop earlier), or was stuck in its own code, while the others wait for it.`,
        action:
          "Look for what depends on the rank's data in front of a collective: skipped samples, conditional losses, uneven data loaders. py-spy dump --pid PID on that rank shows where it is.",
        falseFriends: [
          "A rank that hangs in its data loader or in storage is behind, too: look at its stack before blaming the program.",
        ],
        at: behind.at,
        nodes: [],
        ranks: behind.ranks,
        captures: {},
      },
    });
  }
  return causes;
}

const EXCEPTION_WEIGHT = 0.35;
const MOST_TITLE = 140;

/** Tracebacks that the library knows nothing of ended a process all the same. */
export function exceptionCauses(
  digest: LogDigest,
  known: readonly (FaultMatch | null)[],
  isLeftOut: (kept: number) => boolean,
): ContextCause[] {
  const blocks = new Map(
    digest.blocks
      .filter(({ kind }) => kind === "traceback")
      .map((block) => [`${block.stream} ${block.line}`, block]),
  );
  if (blocks.size === 0) return [];
  const first = digest.kept.findIndex(
    ({ stream, line }, i) => known[i] === null && !isLeftOut(i) && blocks.has(`${stream} ${line}`),
  );
  if (first < 0) return [];
  const { file, line, stream, text } = digest.kept[first]!;
  const { rank } = digest.streams[stream]!;
  const { at } = blocks.get(`${stream} ${line}`)!;
  return [
    {
      weight: EXCEPTION_WEIGHT,
      cause: {
        category: "user.program",
        signature: "exception",
        title: text.trim().slice(0, MOST_TITLE),
        role: "root",
        owner: "user",
        meaning: `A Python exception that the library does not know ended a process${at === null ? "" : `, in ${at}`}.`,
        action:
          "Read the traceback from its last frame up. If the same data and code fail on every rank it is the program; if one rank alone fails, look at its node.",
        falseFriends: ["A broken machine can make a sound program raise anything."],
        at: { file: digest.files[file]!.name, line, text },
        nodes: [],
        ranks: rank === null ? [] : [rank],
        captures: {},
      },
    },
  ];
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
