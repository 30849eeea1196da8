/** What to do about suspects: the advice for their cause, with the line, the call, the process and the machine of this very case. */
import { cutText, rankWords } from "../base/text.ts";
import { factOf } from "../model/facts.ts";
import type { Job } from "../model/job.ts";
import type { Action, Suspect } from "../model/verdict.ts";
import { adviceFor, DUMP_STACKS, type Step, type Steps } from "./advice.ts";
import { codeWords, isOfCode, measuredGpu, TRAINING_CODE } from "./answer.ts";
import { type Case, evidenceOf, firstOf, isStop } from "./case.ts";
import { commandFor } from "./command.ts";
import { MACHINE_GONE } from "./machine-advice.ts";
import { machineOf, machinesBetween } from "./who.ts";

const MOST_CALL = 120;
const MOST_NAMED = 8;

/** Suspects of one cause, with commands that can be pasted as they are for the first of them. */
export function actionsOf(given: Case, alike: readonly Suspect[]): Action[] {
  const { job, kind } = given;
  const [first] = alike as [Suspect];
  const gpu = measuredGpu(given, first);
  const isAlone = alike.length === 1;
  const target = isAlone && isOfCode(given, first) ? TRAINING_CODE : targetOf(job, alike);
  const isWholeMachine = first.type === "machine" && first.cause === "process-gone";
  const known =
    isWholeMachine && isStop(given) ? MACHINE_GONE : adviceFor(first.cause, kind).actions;
  // Code is corrected where it is written, not on the machine that ran it.
  const place = isAlone ? codePlace(given, first) : null;
  return Object.entries(withStack(given, first, known)).map(([what, step]) => {
    const { why, command, title }: Step = typeof step === "string" ? { why: step } : step;
    return {
      do: what,
      ...(title === undefined ? {} : { title }),
      target:
        what === "fix-code" && place !== null ? `${place} (${rankWords(first.ranks)})` : target,
      why: filledIn(why, given, first),
      ...(command === undefined ? {} : { command: commandFor(job, first, command, gpu) }),
    };
  });
}

/** A stack that is among the inputs is read, not asked for again. */
function withStack({ job, kind }: Case, { ranks: [rank] }: Suspect, steps: Steps): Steps {
  const stack = kind === "hang" && rank !== undefined ? job.stacks.get(rank) : undefined;
  const { [DUMP_STACKS]: asked, ...others } = steps;
  if (!stack || asked === undefined) return steps;
  const main = stack.threads.find(({ isMain }) => isMain) ?? stack.threads[0];
  const [frame] = main?.frames ?? [];
  const at = frame ? `${frame.file}:${frame.line} in ${frame.func}` : stack.file;
  const read = `read its stack, which is among the inputs and stands at ${at}: if that is your code, it waits for something there`;
  return { "check-code": read, ...others };
}

function targetOf(job: Job, suspects: readonly Suspect[]): string {
  const [{ type, name }, ...others] = suspects as [Suspect, ...Suspect[]];
  const ranks = suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
  const isAlone = others.length === 0;
  if (isAlone && name !== null) return ranks.length > 0 ? `${name} (${rankWords(ranks)})` : name;
  if (ranks.length === 0) {
    const names = suspects.flatMap((suspect) => suspect.name ?? []);
    return names.length > 0 ? names.slice(0, MOST_NAMED).join(", ") : "the job";
  }
  const { machines } = isAlone && type === "link" ? machinesBetween(job, { type, ranks }) : {};
  const at = machines?.length === 2 ? machines.join(" and ") : machineOf(job, ranks);
  return at === null ? rankWords(ranks) : `${at} (${rankWords(ranks)})`;
}

/** Where a wait for the GPU that a trace shows by its CUDA name comes from in a program that uses PyTorch. */
const ORIGINS: readonly (readonly [call: RegExp, from: string])[] = [
  [/^cudaDeviceSynchronize/, "torch.cuda.synchronize() and timers that call it"],
  [/^cudaEventSynchronize/, "Event.synchronize() and Event.elapsed_time()"],
  [/^cuda(?:Stream|Memcpy)/, ".item(), .cpu(), .tolist() and printing of tensors"],
];

/** `why`: with {line}, {step} and {call} where a case is meant to say which. */
function filledIn(why: string, given: Case, suspect: Suspect): string {
  if (!why.includes("{")) return why;
  const own = evidenceOf(given, suspect);
  const line = firstOf(own, (one) => factOf(one, "own-error")?.code);
  const call = firstOf(own, (one) => factOf(one, "regressed-metric")?.call);
  const step = firstOf(own, (one) => factOf(one, "stopped-rank")?.code);
  return why
    .replaceAll("{line}", line === null ? "the line that raised the exception" : codeWords(line))
    .replaceAll("{step}", step ?? "what this rank does otherwise")
    .replaceAll("{call}", call === null ? "the call in the evidence" : callWords(call));
}

function callWords(call: string): string {
  const from = ORIGINS.find(([pattern]) => pattern.test(call))?.[1];
  return from ?? cutText(call, MOST_CALL);
}

/** "train.py:150": where the code is that is to be corrected; null where nothing tells. */
function codePlace(given: Case, suspect: Suspect): string | null {
  return firstOf(evidenceOf(given, suspect), (one) => {
    const code = factOf(one, "own-error")?.code ?? factOf(one, "stopped-rank")?.code;
    return /^\S+:\d+/.exec(code ?? "")?.[0];
  });
}
