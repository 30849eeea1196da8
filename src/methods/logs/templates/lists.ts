/**
 * Lists of any length become one: ranks, blocks, registers, metrics. Otherwise a template with a list is one template for
 * every length that occurs, which is where Drain makes most of its wrong ones.
 */
import { VARIABLE, type Vocabulary } from "./tokens.ts";

const LONGEST_PERIOD = 8;
const SEPARATORS = new Set([",", ";", "|", "/", "-", "->", ":"]);
const FEWEST_NAMES = 3;

/** `origin`, where given, gets for every token that is left the place of the one that it was. */
export function collapseLists(
  tokens: Int32Array,
  vocabulary: Vocabulary,
  origin?: number[],
): Int32Array {
  let variables = 0;
  for (const token of tokens) if (vocabulary.isNumbered(token)) variables++;
  const comma = vocabulary.find(",");
  const hasComma = comma >= 0 && tokens.includes(comma);
  if (variables < 2 && !hasComma) {
    for (let i = 0; origin && i < tokens.length; i++) origin.push(i);
    return tokens;
  }
  const out: number[] = [];
  const places: number[] = [];
  for (let i = 0; i < tokens.length; i++) {
    out.push(tokens[i]!);
    places.push(i);
  }
  if (hasComma) collapseNames(out, places, comma, vocabulary);
  collapseVariables(out, places, vocabulary);
  collapsePeriods(out, places, vocabulary);
  origin?.push(...places);
  return Int32Array.from(out);
}

/** "a, b, c" in brackets or not: names that commas keep apart. */
function collapseNames(
  tokens: number[],
  places: number[],
  comma: number,
  vocabulary: Vocabulary,
): void {
  const isItem = (at: number): boolean => {
    const token = tokens[at];
    return token === VARIABLE || (token !== undefined && vocabulary.isWord(token));
  };
  for (let i = 0; i < tokens.length; i++) {
    if (!isItem(i) || isItem(i - 1)) continue;
    let end = i;
    while (tokens[end + 1] === comma && isItem(end + 2)) end += 2;
    // The last item must end there: "one, two, three more words" is a sentence.
    if (isItem(end + 1)) end -= 2;
    if ((end - i) / 2 + 1 < FEWEST_NAMES) continue;
    tokens[i] = VARIABLE;
    cut(tokens, places, i + 1, end - i);
  }
}

/** "<NUM> <NUM>", "<NUM>, <NUM>": a mask and those that follow it. */
function collapseVariables(tokens: number[], places: number[], vocabulary: Vocabulary): void {
  for (let i = 0; i + 1 < tokens.length;) {
    if (tokens[i] !== VARIABLE) i++;
    else if (tokens[i + 1] === VARIABLE) cut(tokens, places, i + 1, 1);
    else if (tokens[i + 2] === VARIABLE && SEPARATORS.has(vocabulary.words[tokens[i + 1]!]!))
      cut(tokens, places, i + 1, 2);
    else i++;
  }
}

/** "rank <NUM> ok, rank <NUM> ok,": any run of tokens with a variable in it that comes again at once. */
function collapsePeriods(tokens: number[], places: number[], vocabulary: Vocabulary): void {
  for (let period = 1; period <= LONGEST_PERIOD; period++) {
    for (let i = 0; i + 2 * period <= tokens.length;) {
      if (repeats(tokens, i, period, period) && varies(tokens, i, period, vocabulary))
        cut(tokens, places, i + period, period);
      else i++;
    }
    // The last of a list has no comma behind it.
    for (let i = 0; period > 1 && i + 2 * period - 1 <= tokens.length; i++) {
      const isLast =
        repeats(tokens, i, period, period - 1) &&
        SEPARATORS.has(vocabulary.words[tokens[i + period - 1]!]!) &&
        varies(tokens, i, period, vocabulary);
      if (isLast) cut(tokens, places, i + period - 1, period);
    }
  }
}

function cut(tokens: number[], places: number[], at: number, count: number): void {
  tokens.splice(at, count);
  places.splice(at, count);
}

function repeats(tokens: readonly number[], at: number, period: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (tokens[at + i] !== tokens[at + period + i]) return false;
  return true;
}

function varies(
  tokens: readonly number[],
  at: number,
  period: number,
  vocabulary: Vocabulary,
): boolean {
  for (let i = at; i < at + period; i++) if (vocabulary.isNumbered(tokens[i]!)) return true;
  return false;
}
