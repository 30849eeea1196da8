/**
 * Which words are variables. Forms that are equal but for one column are siblings; where many different words stand in
 * that column, and enough around it stays the same, the column is a variable. It needs no order of arrival, no first
 * token and no tree, and it is one pass over forms and columns with hashes that leave a column out.
 */
import { keyOf, VARIABLE, type Vocabulary } from "./tokens.ts";

export interface SiblingOptions {
  /** Different words that make a column a variable. */
  readonly leastWords: number;
  /** The same where the words look like names: with digits, points, underlines, capitals within. */
  readonly leastNames: number;
  /** The same behind a word such as "user" or "host". */
  readonly leastNamed: number;
  /** Words that must stay the same around it. */
  readonly leastConstant: number;
  /** Where two words are all there are: the share of lines that must have the rarer one. */
  readonly leastOther: number;
}

const ROUNDS = 4;
/** What is named after such a word is one of many. */
const CUE =
  /^(?:users?|username|account|group|hosts?|hostname|node|nodes|name|named|called|from|file|dir|directory|device|disk|interface|server|client|peer|service|unit|daemon|process|program|command|module|driver|package|library|plugin|job|task|queue|partition|pool|pod|container|image|instance|worker|executor|thread|rank|stage|table|topic|key|param|parameter|option|field|attribute|class|function|method|op|operator|kernel|layer|tensor|dataset|split|model|checkpoint|experiment|run|id|domain|realm|address)$/i;
/** States and actions: different events, however many there are. */
const STATE = /^[A-Z]?[a-z-]+(?:ed|ing|ful|able|ible)$/;
const NAME = /<[A-Z]+>|[_.@/\\$-]|[a-z][A-Z]|\d/;

/** Words that make an event a failure: no variable, whatever stands in their place elsewhere. */
const TELLING =
  /(?:Error|Exception|Failure|Fault)s?$|(?:^|[_-])(?:fail(?:s|ed|ing|ure|ures)?|err(?:or|ors|ored)?|fatal|critical|abort(?:s|ed|ing)?|panic(?:ked)?|crash(?:es|ed|ing)?|kill(?:s|ed|ing)?|dead|died|lost|missing|time-?outs?|timed|hangs?|hung|stuck|stall(?:s|ed)?|corrupt(?:ed|ion)?|invalid|illegal|denied|refused|unreachable|unable|cannot|unhealthy|degraded|exceptions?|overflow(?:s|ed)?|throttl(?:ed|ing)|uncorrectable|oom|nan|inf|infinity)$/i;

export function isTelling(word: string): boolean {
  return TELLING.test(word);
}

/** People may be called anything. */
const PERSON = /^(?:user|username|account|login)$/i;

/** For every form the form that it became; forms that are equal have been unified before. */
interface Merged {
  readonly forms: Int32Array[];
  readonly of: Int32Array;
}

/** `lines`: how many lines there are of each form. */
export function mergeSiblings(
  forms: readonly Int32Array[],
  lines: readonly number[],
  vocabulary: Vocabulary,
  options: SiblingOptions,
): Merged {
  let now: Int32Array[] = [...forms];
  let linesNow = lines;
  const of = new Int32Array(forms.length).map((_, i) => i);
  for (let round = 0; round < ROUNDS; round++) {
    const { next, nextLines, became, isChanged } = mergeOnce(now, linesNow, vocabulary, options);
    if (!isChanged) break;
    for (let i = 0; i < of.length; i++) of[i] = became[of[i]!]!;
    now = next;
    linesNow = nextLines;
  }
  return { forms: now, of };
}

function mergeOnce(
  forms: readonly Int32Array[],
  lines: readonly number[],
  vocabulary: Vocabulary,
  options: SiblingOptions,
) {
  const families = familiesOf(forms, vocabulary);
  const variable = new Int32Array(forms.length).fill(-1);
  let isChanged = false;
  for (const { column, members } of families) {
    const before = forms[members[0]!]![column - 1];
    const isPerson = before !== undefined && PERSON.test(vocabulary.words[before]!);
    const free = members.filter(
      (form) =>
        variable[form] === -1 && (isPerson || !isTelling(vocabulary.words[forms[form]![column]!]!)),
    );
    if (!isVariable(forms, lines, free, column, vocabulary, options)) continue;
    for (const form of free) variable[form] = column;
    isChanged = true;
  }
  const became = new Int32Array(forms.length);
  const next: Int32Array[] = [];
  const nextLines: number[] = [];
  const known = new Map<string, number>();
  forms.forEach((form, i) => {
    let tokens = form;
    if (variable[i]! >= 0) {
      tokens = form.slice();
      tokens[variable[i]!] = VARIABLE;
    }
    const key = keyOf(tokens);
    let at = known.get(key);
    if (at === undefined) {
      at = next.length;
      known.set(key, at);
      next.push(tokens);
      nextLines.push(0);
    }
    nextLines[at]! += lines[i]!;
    became[i] = at;
  });
  return { next, nextLines, became, isChanged };
}

interface Family {
  readonly column: number;
  readonly members: number[];
}

/** Forms that differ in one column only, the largest families first. */
function familiesOf(forms: readonly Int32Array[], vocabulary: Vocabulary): Family[] {
  let size = 0;
  for (const form of forms) size += form.length;
  const heads = new Map<number, number>();
  const next = new Int32Array(size);
  const formOf = new Int32Array(size);
  const columnOf = new Int32Array(size);
  const count = new Int32Array(size);
  let entries = 0;
  forms.forEach((form, index) => {
    let high = form.length;
    let low = Math.imul(form.length, 0x9e3779b1);
    for (let c = 0; c < form.length; c++) {
      high = (high + mix(form[c]!, c, 0x85ebca6b)) | 0;
      low = (low + mix(form[c]!, c, 0xc2b2ae35)) | 0;
    }
    for (let c = 0; c < form.length; c++) {
      const token = form[c]!;
      if (token !== VARIABLE && !vocabulary.isWord(token)) continue;
      const a = (high - mix(token, c, 0x85ebca6b) + Math.imul(c, 0x27d4eb2f)) >>> 0;
      const b = (low - mix(token, c, 0xc2b2ae35) + Math.imul(c, 0x165667b1)) & 0x1fffff;
      const key = b * 2 ** 32 + a;
      const entry = entries++;
      formOf[entry] = index;
      columnOf[entry] = c;
      const head = heads.get(key);
      if (head === undefined) {
        heads.set(key, entry);
        next[entry] = -1;
        count[entry] = 1;
      } else {
        next[entry] = next[head]!;
        next[head] = entry;
        count[head]!++;
      }
    }
  });
  const out: Family[] = [];
  for (const head of heads.values()) {
    if (count[head]! < 2) continue;
    const members: number[] = [];
    for (let entry = head; entry >= 0; entry = next[entry]!) members.push(formOf[entry]!);
    out.push({ column: columnOf[head]!, members });
  }
  return out.toSorted((a, b) => b.members.length - a.members.length || a.column - b.column);
}

function isVariable(
  forms: readonly Int32Array[],
  lines: readonly number[],
  members: readonly number[],
  column: number,
  vocabulary: Vocabulary,
  options: SiblingOptions,
): boolean {
  if (members.length < 2) return false;
  let words = 0;
  let names = 0;
  let masks = 0;
  let states = 0;
  for (const member of members) {
    const token = forms[member]![column]!;
    if (token === VARIABLE) masks++;
    else if (NAME.test(vocabulary.words[token]!)) names++;
    else {
      words++;
      if (STATE.test(vocabulary.words[token]!)) states++;
    }
  }
  const form = forms[members[0]!]!;
  let constant = 0;
  for (let c = 0; c < form.length; c++) {
    if (c !== column && vocabulary.isWord(form[c]!)) constant++;
  }
  if (constant < options.leastConstant) return false;
  const all = words + names + masks;
  // A place that holds numbers or addresses elsewhere is a variable's.
  if (masks > 0 && words + names > 0) return all >= 2;
  if (2 * states > all) return false;
  const before = column > 0 ? vocabulary.words[form[column - 1]!]! : "";
  if (all >= options.leastNamed && CUE.test(before)) {
    const isEnough = all >= options.leastNames || PERSON.test(before);
    if (isEnough || !isConstant(lines, members, options.leastOther)) return true;
  }
  return all >= options.leastWords || (names > words && all >= options.leastNames);
}

/**
 * Whether nearly all lines have the same word there. Then it is no variable with two values: the other word is the
 * exception, which is what somebody who looks for a fault wants to see by itself.
 */
function isConstant(
  lines: readonly number[],
  members: readonly number[],
  leastOther: number,
): boolean {
  let most = 0;
  let sum = 0;
  for (const member of members) {
    sum += lines[member]!;
    most = Math.max(most, lines[member]!);
  }
  return sum - most < leastOther * sum;
}

function mix(token: number, column: number, seed: number): number {
  let h = Math.imul(token + 1, seed) ^ Math.imul(column + 1, 0x9e3779b1);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return h ^ (h >>> 15);
}
