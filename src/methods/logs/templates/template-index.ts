/**
 * Finds known templates in texts of other jobs and releases: the pool of normal events (L4 §5.2). Masks take away line
 * numbers, versions and paths; what is left may differ in marks and lengths of lists, but not in words.
 */
import { getOrInsert } from "../../../base/group-by.ts";
import { collapseLists } from "./lists.ts";
import { maskText } from "./masks.ts";
import { isTelling } from "./siblings.ts";
import { isWordToken, keyOf, splitTokens, VARIABLE, Vocabulary } from "./tokens.ts";

/** How templates write a word that varies (see templates.ts). */
const WILDCARD = "<*>";
/** A text of fewer words must be equal: one word says too little. */
const LEAST_WORDS = 2;

interface Parsed {
  readonly tokens: Int32Array;
  /** Columns where any word may stand. */
  readonly wild: readonly number[];
  /** Columns with a word that makes the event a failure. */
  readonly telling: readonly number[];
  /** Its words alone; "" where they are too few. */
  readonly words: string;
}

export class TemplateIndex {
  readonly #vocabulary = new Vocabulary();
  readonly #exact = new Map<string, number>();
  readonly #byWords = new Map<string, number>();
  /** By number of tokens, the sets of columns that are wild in templates of that length. */
  readonly #wild = new Map<number, Map<string, readonly number[]>>();

  /** Texts of templates, or any others: raw lines are masked as they are. */
  constructor(texts: readonly string[]) {
    for (const [i, text] of texts.entries()) this.add(text, i);
  }

  add(text: string, template: number): void {
    const { tokens, wild, words } = this.#parse(text, true);
    this.#learn(tokens, template);
    // Where numbers stand in a wildcard's place they may be part of a list.
    if (wild.length > 0)
      this.#learn(this.#parse(text.replaceAll(WILDCARD, "<NUM>"), true).tokens, template);
    if (words !== "" && wild.length === 0 && !this.#byWords.has(words))
      this.#byWords.set(words, template);
    if (wild.length === 0) return;
    getOrInsert(this.#wild, tokens.length, () => new Map()).set(wild.join(" "), wild);
  }

  #learn(tokens: Int32Array, template: number): void {
    const key = keyOf(tokens);
    if (!this.#exact.has(key)) this.#exact.set(key, template);
  }

  /** The template that says the same, or -1. Takes a line's text or another job's template. */
  match(text: string): number {
    const { tokens, words, telling } = this.#parse(text, false);
    const exact = this.#exact.get(keyOf(tokens));
    if (exact !== undefined) return exact;
    for (const columns of this.#wild.get(tokens.length)?.values() ?? []) {
      if (columns.some((column) => telling.includes(column))) continue;
      const general = tokens.slice();
      for (const column of columns) general[column] = VARIABLE;
      const found = this.#exact.get(keyOf(general));
      if (found !== undefined) return found;
    }
    return words === "" ? -1 : (this.#byWords.get(words) ?? -1);
  }

  #parse(text: string, isNew: boolean): Parsed {
    const pieces = splitTokens(maskText(text));
    const ids = new Int32Array(pieces.length);
    // Unlike a mask, a wildcard does not make a list with its neighbours.
    const wildcard = this.#vocabulary.idOf("\u0000wild");
    for (let i = 0; i < pieces.length; i++) {
      const piece = pieces[i]!;
      if (piece === WILDCARD) ids[i] = wildcard;
      else ids[i] = isNew ? this.#vocabulary.idOf(piece) : this.#known(piece);
    }
    const origin: number[] = [];
    const tokens = collapseLists(ids, this.#vocabulary, origin);
    const wild: number[] = [];
    const telling: number[] = [];
    const words: string[] = [];
    for (let i = 0; i < tokens.length; i++) {
      const piece = pieces[origin[i]!]!;
      if (tokens[i] === wildcard) {
        tokens[i] = VARIABLE;
        wild.push(i);
      } else if (tokens[i] !== VARIABLE && isWordToken(piece)) {
        words.push(piece);
        if (isTelling(piece)) telling.push(i);
      }
    }
    const loose = words.length < LEAST_WORDS ? "" : words.join(" ").toLowerCase();
    return { tokens, wild, telling, words: loose };
  }

  /** Words that no template has share one token, so that the vocabulary does not grow with the lines asked about. */
  #known(piece: string): number {
    const id = this.#vocabulary.find(piece);
    return id >= 0 ? id : this.#vocabulary.idOf("\u0000unknown");
  }
}
