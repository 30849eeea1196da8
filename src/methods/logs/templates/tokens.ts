/** Words and marks of a masked text. Masks are all one token: what matters is that something variable stands there. */
import { maskText } from "./masks.ts";

/** The token of everything variable. */
export const VARIABLE = 0;
/** More tokens than this say nothing new about a line. */
const MOST_TOKENS = 160;
const POINT = 46;
const SPACE = 0;
const WORD = 1;
const MARK_KIND = 2;
const STOP = 3;
/** What each character is. */
const KINDS = new Uint8Array(128).fill(WORD);
KINDS.fill(SPACE, 0, 33);
for (const mark of ",;:()[]{}\"'`|=") KINDS[mark.charCodeAt(0)] = MARK_KIND;
KINDS[POINT] = STOP;
const RULER = /^(.)\1+$/;
const MASK = /^[-+]?<(?:[A-Z]+|\*)>[%]?$/;
const MARK = /^[^A-Za-z0-9<>\u0080-\uffff]+$/;

/** Whether it is neither a mask nor a mark. */
export function isWordToken(token: string): boolean {
  return !MASK.test(token) && !MARK.test(token);
}

/** Tokens as numbers; the first one is `VARIABLE`. */
export class Vocabulary {
  readonly words: string[] = ["<*>"];
  /** 1 for words, 0 for marks and masks. */
  readonly #isWord: number[] = [0];
  readonly #isNumbered: boolean[] = [true];
  readonly #ids = new Map<string, number>();

  idOf(token: string): number {
    const known = this.#ids.get(token);
    if (known !== undefined) return known;
    if (MASK.test(token)) {
      this.#ids.set(token, VARIABLE);
      return VARIABLE;
    }
    const id = this.words.length;
    this.words.push(token);
    this.#isWord.push(MARK.test(token) ? 0 : 1);
    this.#isNumbered.push(token.includes("<NUM>"));
    this.#ids.set(token, id);
    return id;
  }

  /** -1 for a token that was never seen. */
  find(token: string): number {
    return this.#ids.get(token) ?? (MASK.test(token) ? VARIABLE : -1);
  }

  /** Whether it is a mask or has a number in it. */
  isNumbered(id: number): boolean {
    return this.#isNumbered[id]!;
  }

  isWord(id: number): boolean {
    return this.#isWord[id] === 1;
  }
}

/** The tokens of a masked text; `places` gets where they stand in it. */
export function splitTokens(masked: string, places?: number[]): string[] {
  const out: string[] = [];
  const length = masked.length;
  for (let at = 0; at < length && out.length < MOST_TOKENS;) {
    const kind = kindAt(masked, at);
    if (kind === SPACE) {
      at++;
      continue;
    }
    let end = at + 1;
    if (kind === STOP) {
      while (end < length && masked.charCodeAt(end) === POINT) end++;
      // A full stop and a leader of any length.
      out.push(end - at === 1 ? "." : "..");
    } else if (kind === MARK_KIND) out.push(masked[at]!);
    else {
      while (end < length) {
        const next = kindAt(masked, end);
        if (next === WORD) end++;
        // A point within a word belongs to it.
        else if (next === STOP && end + 1 < length && kindAt(masked, end + 1) === WORD) end += 2;
        else break;
      }
      out.push(wordToken(masked.slice(at, end)));
    }
    places?.push(at, end);
    at = end;
  }
  return out;
}

/** Rulers of any length are the same mark. */
function wordToken(word: string): string {
  return word.length > 2 && RULER.test(word) ? word.slice(0, 2) : word;
}

function kindAt(text: string, at: number): number {
  const c = text.charCodeAt(at);
  return c < 128 ? KINDS[c]! : WORD;
}

/** Equal for equal tokens; shorter and quicker than their numbers in writing. */
export function keyOf(tokens: Int32Array): string {
  let key = "";
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    key += String.fromCharCode(token & 0xffff, token >>> 16);
  }
  return key;
}

export function tokensOf(text: string, vocabulary: Vocabulary): Int32Array {
  const tokens = splitTokens(maskText(text));
  const out = new Int32Array(tokens.length);
  for (let i = 0; i < tokens.length; i++) out[i] = vocabulary.idOf(tokens[i]!);
  return out;
}
