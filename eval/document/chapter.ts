/** A chapter of the document: what a paper reports, where ours stands, and what cannot be had here. */
import { wilson } from "../joint/figures.ts";
import type { LAB } from "./lab.ts";
import type { Part } from "./part.ts";
import type { Script } from "./topics.ts";

export interface Row {
  /** "Figure 15b, §5.1.2" */
  readonly at: string;
  readonly shows: string;
  /** The paper's figure, or what is aimed at. */
  readonly published: string;
  readonly script: Script | typeof LAB;
  /** The heading in the script's output, as it begins there. */
  readonly under?: string;
  readonly ours: (part: Part) => string;
  /** How many cases, of which seeds, and how far the figure can be trusted. */
  readonly count: (part: Part) => string;
  /** A quick run does not have it. */
  readonly isFullOnly?: boolean;
}

export interface NotReproduced {
  readonly at: string;
  readonly shows: string;
  readonly why: string;
}

export interface Paper {
  readonly cited: string;
  readonly tables: number;
  readonly figures: number;
  /** Drawings of how something works, examples without a measurement. */
  readonly drawings: readonly string[];
  readonly notReproduced: readonly NotReproduced[];
}

export interface Chapter {
  readonly title: string;
  readonly about: string;
  readonly paper?: Paper;
  readonly rows: readonly Row[];
  /** What others published on the same question. */
  readonly peers: readonly string[];
  readonly scripts: readonly Script[];
}

/** Tables and figures of a paper that no row, no reason and no list of drawings accounts for. */
export function unaccounted({ paper, rows }: Chapter): string[] {
  if (!paper) return [];
  const words = [...rows, ...paper.notReproduced].map(({ at }) => at).concat(paper.drawings);
  const named = new Set(words.flatMap((at) => numbered(at)));
  const all = [
    ...Array.from({ length: paper.tables }, (_, i) => `Table ${i + 1}`),
    ...Array.from({ length: paper.figures }, (_, i) => `Figure ${i + 1}`),
  ];
  return all.filter((one) => !named.has(one));
}

/** "Figures 1, 4b and 8 to 9, Table 2" → Figure 1, Figure 4, Figure 8, Figure 9, Table 2. */
function numbered(at: string): string[] {
  const list = /(Table|Figure)s? (\d+[a-z]?(?: to \d+)?(?:(?:, | and )\d+[a-z]?(?: to \d+)?)*)/g;
  return [...at.matchAll(list)].flatMap(([, what, numbers]) =>
    [...numbers!.matchAll(/(\d+)[a-z]?(?: to (\d+))?/g)].flatMap(([, from, to = from]) =>
      Array.from(
        { length: Number(to) - Number(from) + 1 },
        (_, i) => `${what} ${Number(from) + i}`,
      ),
    ),
  );
}

export interface Counted {
  readonly right: number;
  readonly of: number;
}

/** The first "5/6" or "5 of 6" of a text. */
export function countedIn(text: string): Counted {
  const found = /(\d[\d,]*)\s*(?:\/|of)\s*(\d[\d,]*)/.exec(text);
  if (!found) throw new Error(`no share of anything in "${text}"`);
  const [right, of] = [found[1]!, found[2]!].map((digits) => Number(digits.replaceAll(",", "")));
  return { right: right!, of: of! };
}

export function sumOf(counts: readonly Counted[]): Counted {
  return counts.reduce((a, b) => ({ right: a.right + b.right, of: a.of + b.of }), {
    right: 0,
    of: 0,
  });
}

/** "57 of 60 (95.0 %)"; no case is no share. */
export function shareWords({ right, of }: Counted): string {
  return of === 0 ? "none drawn" : `${right} of ${of} (${((100 * right) / of).toFixed(1)} %)`;
}

/** "n 60, 86 to 99 %" */
export function intervalWords(share: Counted): string {
  const [low, high] = wilson(share).map((one) => (100 * one).toFixed(0));
  return share.of === 0 ? "n 0" : `n ${share.of}, 95 %: ${low} to ${high} %`;
}
