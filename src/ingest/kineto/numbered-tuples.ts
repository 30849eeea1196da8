/** Numbers for tuples of numbers: process groups (name, description, members), shapes (sizes, types). */
export class NumberedTuples {
  readonly tuples: (readonly number[])[] = [];
  readonly #most: number;
  readonly #root: Branch = new Map();

  constructor(most: number) {
    this.#most = most;
  }

  /** -1 where there are too many already. */
  number(first: number, second: number, third: number): number {
    const seconds = branch(this.#root, first);
    const thirds = branch(seconds, second);
    const known = thirds.get(third);
    if (known !== undefined) return known as number;
    if (this.tuples.length >= this.#most) return -1;
    thirds.set(third, this.tuples.length);
    return this.tuples.push([first, second, third]) - 1;
  }
}

interface Branch extends Map<number, Branch | number> {}

function branch(from: Branch, key: number): Branch {
  let next = from.get(key) as Branch | undefined;
  if (!next) {
    next = new Map();
    from.set(key, next);
  }
  return next;
}
