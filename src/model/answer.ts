/**
 * The answer as every reader gets it: terminal, report, ticket, page and alert put the same parts in the same order. The
 * verdict makes it once (verdict/answer.ts); nobody takes a sentence apart again.
 */
import { capital } from "../base/text.ts";

export interface Answer {
  /** "GPU 5 of node002 (rank 13)"; "" where nobody is suspected. */
  readonly who: string;
  /** What it does, with what shows it: "is throttled: GPU clock 645 MHz, peers 1,890 MHz; 90 °C". */
  readonly what: string;
  /** Whether something physical shows it (metrics, a stack, an error line), or only how long others wait. */
  readonly isSeen: boolean;
  /** What it does to the job: "slows the job down". */
  readonly effect: string;
  /** "1.23 times as long: 345 ms → 425 ms per iteration"; null for what does not slow a job down, or nobody measured. */
  readonly slower: string | null;
  /** Whether it is over: then all is told in the past. Absent where it is not. */
  readonly isOver?: true;
  /** "the other 7 ranks only wait"; null where nobody is known to. */
  readonly waiting: string | null;
  /** Where else to find it, a word or two each: "rank 13", "pid 705", "NIC mlx5_5", "switch leaf3". */
  readonly where: readonly string[];
  /** The GPU as monitoring calls it ("gpu5"), where the answer is about one; else null. */
  readonly device: string | null;
}

/** One sentence: who, and what is wrong with it. */
export function headlineOf({ who, what }: Answer): string {
  return capital(who === "" ? what : `${who} ${what}`);
}

/** What it does to the job, or did, and who only waits; "" where neither is known. */
export function effectOf({ who, effect, slower, isOver, waiting }: Answer): string {
  const sentences = [
    who !== "" && (slower === null || isOver) ? `This ${effect}.` : "",
    who !== "" && slower !== null ? `The job ${isOver ? "took" : "takes"} ${slower}.` : "",
    waiting === null ? "" : `${capital(waiting)}.`,
  ];
  return sentences.filter((one) => one !== "").join(" ");
}
