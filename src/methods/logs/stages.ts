/** Which part of a job's life a line belongs to (L4 §5.3.2), by what frameworks print when a part begins. */
import type { LogDigest } from "../../model/log-digest.ts";
import type { Stage } from "../../model/log-report.ts";
import type { LogTemplates } from "./spatial-matrix.ts";
import { progressOf } from "./temporal-progress.ts";

interface StageRule {
  readonly stage: Stage;
  readonly pattern: RegExp;
  /** Says that the stage is over, so that training goes on. */
  readonly isEnd?: true;
}

/** The first that matches counts. */
const RULES: readonly StageRule[] = [
  {
    stage: "checkpoint",
    isEnd: true,
    pattern:
      /(?:success(?:fully)?|finished|done|completed?)\b.{0,30}\b(?:saved?|saving|writing|checkpoint)|checkpoint.{0,60}\b(?:saved|is ready|committed|finished|complete)|saved (?:model )?checkpoint/i,
  },
  {
    stage: "checkpoint",
    pattern:
      /\b(?:saving|writing|begin(?:ning)? to save|start(?:ing)? to save|about to save|async save)\b.{0,40}\b(?:checkpoint|model states?|state dict|optimizer)|saving (?:model )?to\b/i,
  },
  {
    stage: "exit",
    pattern:
      /after training is done|training (?:is )?(?:complete|completed|done|finished)\b|exiting program at|train_runtime|destroy(?:ing)? process group|killing subprocess|sigterm|job step aborted|cancelled at|shutting down/i,
  },
  {
    stage: "train",
    pattern:
      /before the start of training step|\bstart(?:ing)? (?:the )?training\b|^training \.\.\.|\*+ running training|begin(?:ning)? training|training starts/i,
  },
  {
    stage: "load",
    pattern:
      /\b(?:loading|loaded|load|reading)\b.{0,60}\b(?:checkpoint|model|weights?|tokenizer|dataset|index|mapping|config(?:uration)?|vocab|shards?|state)|build(?:ing)? (?:gpt|bert|t5|train|the|model|dataset|\S*tokenizer)|building (?:train|dataloader|dataset)|dataloaders? (?:are|is) built|number of (?:trainable )?parameters|reusing dataset|compil(?:ing|ed).{0,40}(?:kernel|index|extension)|initiali[sz](?:ing|ed) (?:the )?(?:model|optimizer|zero)/i,
  },
  {
    stage: "launch",
    pattern:
      /initiali[sz](?:ing|ed) (?:torch|process group|distributed|nccl|tensor model parallel|pipeline|mpi)|rendezvous|torchrun|torch\.distributed\.(?:run|launch)|omp_num_threads|nccl version|bootstrap|init_process_group|world[_ ]size|master_addr|end of arguments|srun|using world/i,
  },
];

export function stageRuleOf(
  text: string,
): { readonly stage: Stage; readonly isEnd: boolean } | null {
  for (const { stage, pattern, isEnd } of RULES)
    if (pattern.test(text)) return { stage, isEnd: isEnd === true };
  return null;
}

/** A place in the logs. */
interface LogPlace {
  readonly stream: number;
  readonly line: number;
  /** NaN where unknown. */
  readonly timeMs: number;
}

interface Mark {
  readonly stage: Stage;
  readonly isEnd: boolean;
  readonly file: number;
  readonly line: number;
  readonly timeMs: number;
}

/** The stage at a place: of the last mark before it, in its own file, else by time, else by what the job had reached. */
export function stageAt(digest: LogDigest, templates: LogTemplates, place: LogPlace): Stage {
  const progress = progressOf(digest);
  const marks = marksOf(digest, templates);
  const { file } = digest.streams[place.stream]!;
  const before = progress.before(place.stream, place.line, place.timeMs);
  const byLine = latest(
    marks.filter((mark) => mark.file === file && mark.line < place.line),
    ({ line }) => line,
  );
  const byTime = latest(
    marks.filter(({ timeMs }) => timeMs <= place.timeMs),
    ({ timeMs }) => timeMs,
  );
  const isReporting = digest.iterations.some(({ stream }) => digest.streams[stream]!.file === file);
  // A file with reports is the best witness of itself; one without may know less than the job's clock.
  const mark = isReporting ? (byLine ?? byTime) : (byTime ?? byLine);
  if (before > 0 || (Number.isNaN(before) && progress.count > 0)) {
    const report = isReporting ? reportBefore(digest, file, place) : null;
    if (!mark || mark.isEnd || mark.stage !== "checkpoint") return "train";
    // Training that reported since has left the checkpoint behind.
    if (report !== null && report > mark.line) return "train";
    return "checkpoint";
  }
  if (!mark) return progress.count > 0 && before > 0 ? "train" : "launch";
  return mark.isEnd ? "train" : mark.stage;
}

function reportBefore({ iterations, streams }: LogDigest, file: number, place: LogPlace): number {
  let best = -1;
  for (const { stream, line } of iterations) {
    if (streams[stream]!.file !== file) continue;
    for (let i = line.length - 1; i >= 0; i--) {
      if (line[i]! >= place.line) continue;
      if (line[i]! > best) best = line[i]!;
      break;
    }
  }
  return best;
}

/** First and last line of every event that a rule knows, in every stream. */
function marksOf({ cells, streams }: LogDigest, templates: LogTemplates): Mark[] {
  const rules = templates.texts.map(stageRuleOf);
  const marks: Mark[] = [];
  for (let c = 0; c < cells.count; c++) {
    const rule = rules[templates.of[cells.shape[c]!]!];
    if (!rule) continue;
    const { file } = streams[cells.stream[c]!]!;
    marks.push({ ...rule, file, line: cells.firstLine[c]!, timeMs: cells.firstMs[c]! });
    if (cells.lines[c]! > 1)
      marks.push({ ...rule, file, line: cells.lastLine[c]!, timeMs: cells.lastMs[c]! });
  }
  return marks;
}

function latest(marks: readonly Mark[], of: (mark: Mark) => number): Mark | null {
  let best: Mark | null = null;
  for (const mark of marks) if (!best || of(mark) > of(best)) best = mark;
  return best;
}

/** Where the job's last line stands: of a silent failure that is all there is. */
export function lastPlace({ cells, streams }: LogDigest): LogPlace | null {
  let last: LogPlace | null = null;
  for (let c = 0; c < cells.count; c++) {
    const stream = cells.stream[c]!;
    const place = { stream, line: cells.lastLine[c]!, timeMs: cells.lastMs[c]! };
    if (!last || isLater(place, last, streams)) last = place;
  }
  return last;
}

function isLater(a: LogPlace, b: LogPlace, streams: LogDigest["streams"]): boolean {
  if (a.timeMs > b.timeMs) return true;
  if (a.timeMs < b.timeMs) return false;
  return streams[a.stream]!.file === streams[b.stream]!.file && a.line > b.line;
}
