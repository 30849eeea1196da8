/**
 * Templates out of shapes (L4 §4.2 uses Drain). All shapes are known at once, so nothing depends on their order: masks
 * first, lists to one, equal forms unified, and then words that vary (siblings.ts). Nothing is ever evicted.
 */
import { collapseLists } from "./lists.ts";
import { maskText } from "./masks.ts";
import { mergeSiblings, type SiblingOptions } from "./siblings.ts";
import { keyOf, splitTokens, tokensOf, VARIABLE, Vocabulary } from "./tokens.ts";

interface Templates {
  /** The template of every shape. */
  readonly of: Int32Array;
  /** With named masks. */
  readonly texts: string[];
  /**
   * Stable: the hash of the form (masks alike, lists as one) of the template's first shape. Later shapes that make the
   * template more general do not change it, nor do other numbers, paths or lengths of lists.
   */
  readonly ids: string[];
}

const DEFAULTS: SiblingOptions = {
  leastWords: 5,
  leastNames: 3,
  leastNamed: 2,
  leastConstant: 3,
  leastOther: 0.05,
};

export function templatesOf(
  shapes: readonly { readonly text: string; readonly count: number }[],
): Templates {
  const vocabulary = new Vocabulary();
  const formOf = new Int32Array(shapes.length);
  const forms: Int32Array[] = [];
  const lines: number[] = [];
  const firstShape: number[] = [];
  const known = new Map<string, number>();
  shapes.forEach((shape, i) => {
    const tokens = collapseLists(tokensOf(shape.text, vocabulary), vocabulary);
    const key = keyOf(tokens);
    let form = known.get(key);
    if (form === undefined) {
      form = forms.length;
      known.set(key, form);
      forms.push(tokens);
      firstShape.push(i);
      lines.push(0);
    }
    lines[form]! += shape.count;
    formOf[i] = form;
  });
  const merged = mergeSiblings(forms, lines, vocabulary, DEFAULTS);
  const first = new Int32Array(merged.forms.length).fill(-1);
  const wild: Set<number>[] = merged.forms.map(() => new Set<number>());
  for (let form = 0; form < forms.length; form++) {
    const template = merged.of[form]!;
    if (first[template] === -1) first[template] = form;
    const tokens = merged.forms[template]!;
    for (let c = 0; c < tokens.length; c++)
      if (tokens[c] === VARIABLE && forms[form]![c] !== VARIABLE) wild[template]!.add(c);
  }
  const texts: string[] = [];
  const ids: string[] = [];
  for (let template = 0; template < merged.forms.length; template++) {
    const form = first[template]!;
    texts.push(render(shapes[firstShape[form]!]!.text, wild[template]!, vocabulary));
    ids.push(hash(Array.from(forms[form]!, (token) => vocabulary.words[token]!).join(" ")));
  }
  return { of: formOf.map((form) => merged.of[form]!), texts, ids };
}

/** The first shape's masked text, with a wildcard in the columns where words vary. */
function render(text: string, wild: ReadonlySet<number>, vocabulary: Vocabulary): string {
  const masked = maskText(text);
  if (wild.size === 0) return masked;
  const places: number[] = [];
  const pieces = splitTokens(masked, places);
  const origin: number[] = [];
  collapseLists(
    Int32Array.from(pieces, (piece) => vocabulary.idOf(piece)),
    vocabulary,
    origin,
  );
  let out = "";
  let from = 0;
  for (let c = 0; c < origin.length; c++) {
    if (!wild.has(c)) continue;
    // A list in that place goes with its first item.
    const last =
      origin[c + 1] === undefined ? origin[c]! : Math.min(origin[c + 1]! - 1, pieces.length);
    const end = vocabulary.idOf(pieces[last]!) === VARIABLE ? last : origin[c]!;
    out += `${masked.slice(from, places[2 * origin[c]!])}<*>`;
    from = places[2 * end + 1]!;
  }
  return out + masked.slice(from);
}

/** 48 bits of FNV-1a, twice seeded. */
function hash(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x1000193;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    a = Math.imul(a ^ c, 0x01000193);
    b = Math.imul(b ^ c, 0x5bd1e995);
  }
  const hex = (n: number) => (n >>> 0).toString(16).padStart(8, "0");
  return hex(a) + hex(b).slice(0, 4);
}
