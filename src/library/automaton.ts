/**
 * Finds all of many literals in one pass (Aho and Corasick, 1975). Letters without regard to case; nodes are rows of one
 * typed array, so that a library of thousands of literals costs no more per character than one of ten.
 */

/** Classes of characters: 0 is anything that no literal has. */
const CODES = 128;

export class Automaton {
  /** By character code below 128, lower and upper case alike. */
  readonly #classOf = new Uint8Array(CODES);
  readonly #classes: number;
  /** Next node, by node · classes + class. */
  readonly #next: Int32Array;
  /** First literal that ends at a node, -1 for none; then `#also` of it, and so on. */
  readonly #ends: Int32Array;
  readonly #alsoEnds: Int32Array;
  /** By literal: the next that ends at the same node. */
  readonly #also: Int32Array;
  readonly literals: readonly string[];

  constructor(literals: readonly string[]) {
    this.literals = literals.map((literal) => literal.toLowerCase());
    let classes = 1;
    for (const literal of this.literals) {
      for (let i = 0; i < literal.length; i++) {
        const code = literal.charCodeAt(i);
        if (code < CODES && this.#classOf[code] === 0) {
          this.#classOf[code] = classes;
          if (code >= 97 && code <= 122) this.#classOf[code - 32] = classes;
          classes++;
        }
      }
    }
    this.#classes = classes;
    const most = 1 + this.literals.reduce((sum, { length }) => sum + length, 0);
    const next = new Int32Array(most * classes).fill(-1);
    const ends = new Int32Array(most).fill(-1);
    this.#also = new Int32Array(this.literals.length).fill(-1);
    let nodes = 1;
    this.literals.forEach((literal, index) => {
      let node = 0;
      for (let i = 0; i < literal.length; i++) {
        const at = node * classes + this.#class(literal.charCodeAt(i));
        if (next[at]! < 0) next[at] = nodes++;
        node = next[at]!;
      }
      this.#also[index] = ends[node]!;
      ends[node] = index;
    });
    // Failure links, breadth first, folded into the transitions.
    const fail = new Int32Array(nodes);
    const alsoEnds = new Int32Array(nodes).fill(-1);
    const queue: number[] = [];
    for (let c = 0; c < classes; c++) {
      const child = next[c]!;
      if (child > 0) queue.push(child);
      else next[c] = 0;
    }
    for (let head = 0; head < queue.length; head++) {
      const node = queue[head]!;
      const back = fail[node]!;
      alsoEnds[node] = ends[back]! >= 0 ? back : alsoEnds[back]!;
      for (let c = 0; c < classes; c++) {
        const at = node * classes + c;
        const child = next[at]!;
        const other = next[back * classes + c]!;
        if (child < 0) next[at] = other;
        else {
          fail[child] = other;
          queue.push(child);
        }
      }
    }
    this.#next = next.slice(0, nodes * classes);
    this.#ends = ends.slice(0, nodes);
    this.#alsoEnds = alsoEnds;
  }

  /** Calls back with the index of every literal that stands in the text, once for every place. */
  scan(text: string, onLiteral: (index: number) => void): void {
    const classes = this.#classes;
    const next = this.#next;
    let node = 0;
    for (let i = 0; i < text.length; i++) {
      node = next[node * classes + this.#class(text.charCodeAt(i))]!;
      for (
        let at = this.#ends[node]! >= 0 ? node : this.#alsoEnds[node]!;
        at >= 0;
        at = this.#alsoEnds[at]!
      ) {
        for (let literal = this.#ends[at]!; literal >= 0; literal = this.#also[literal]!)
          onLiteral(literal);
      }
    }
  }

  /** Whether any literal stands in the text. */
  any(text: string): boolean {
    const classes = this.#classes;
    const next = this.#next;
    let node = 0;
    for (let i = 0; i < text.length; i++) {
      node = next[node * classes + this.#class(text.charCodeAt(i))]!;
      if (this.#ends[node]! >= 0 || this.#alsoEnds[node]! >= 0) return true;
    }
    return false;
  }

  #class(code: number): number {
    return code < CODES ? this.#classOf[code]! : 0;
  }
}
