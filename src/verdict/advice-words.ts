/** What an advice's sentence says of this very case: the line, the call, the process. */
import { cutText } from "../base/text.ts";
import { factOf } from "../model/facts.ts";
import type { Finding } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { Suspect } from "../model/verdict.ts";
import { codeWords } from "./answer.ts";

const MOST_CALL = 120;

/** Where a wait for the GPU that a trace shows by its CUDA name comes from in a program that uses PyTorch. */
const ORIGINS: readonly (readonly [call: RegExp, from: string])[] = [
  [/^cudaDeviceSynchronize/, "torch.cuda.synchronize() and timers that call it"],
  [/^cudaEventSynchronize/, "Event.synchronize() and Event.elapsed_time()"],
  [/^cuda(?:Stream|Memcpy)/, ".item(), .cpu(), .tolist() and printing of tensors"],
];

/** `why`: with {line}, {step}, {call} and {pid} where a case is meant to say which. */
export function filledIn(
  why: string,
  job: Job,
  { ranks, evidence }: Suspect,
  findings: readonly Finding[],
): string {
  if (!why.includes("{")) return why;
  const own = findings.filter(({ id }) => evidence.includes(id));
  const first = <T>(of: (one: Finding) => T | null | undefined): T | null => {
    for (const one of own) {
      const value = of(one);
      if (value !== null && value !== undefined) return value;
    }
    return null;
  };
  const line = first((one) => factOf(one, "own-error")?.code);
  const call = first((one) => factOf(one, "regressed-metric")?.call);
  const step = first((one) => factOf(one, "stopped-rank")?.code);
  const pid = ranks.length === 1 ? (job.ranks.get(ranks[0]!)?.pid ?? null) : null;
  return why
    .replaceAll("{line}", line === null ? "the line that raised the exception" : codeWords(line))
    .replaceAll("{step}", step ?? "what this rank does otherwise")
    .replaceAll("{call}", call === null ? "the call in the evidence" : callWords(call))
    .replaceAll("{pid}", pid === null ? "<pid>" : String(pid));
}

/** "train.py:150": where the code is that is to be corrected; null where nothing tells. */
export function codePlace({ evidence }: Suspect, findings: readonly Finding[]): string | null {
  for (const one of findings) {
    if (!evidence.includes(one.id)) continue;
    const code = factOf(one, "own-error")?.code ?? factOf(one, "stopped-rank")?.code;
    const place = /^\S+:\d+/.exec(code ?? "")?.[0];
    if (place !== undefined) return place;
  }
  return null;
}

function callWords(call: string): string {
  const from = ORIGINS.find(([pattern]) => pattern.test(call))?.[1];
  return from ?? cutText(call, MOST_CALL);
}
