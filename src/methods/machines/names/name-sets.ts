/** Names that are one, as sets that grow together (union-find). */
import { getOrInsert } from "../../../base/group-by.ts";

export class NameSets {
  readonly #parent = new Map<string, string>();

  add(name: string): void {
    if (!this.#parent.has(name)) this.#parent.set(name, name);
  }

  has(name: string): boolean {
    return this.#parent.has(name);
  }

  all(): Iterable<string> {
    return this.#parent.keys();
  }

  rootOf(name: string): string {
    let root = name;
    while ((this.#parent.get(root) ?? root) !== root) root = this.#parent.get(root)!;
    for (let at = name; at !== root;) {
      const next = this.#parent.get(at)!;
      this.#parent.set(at, root);
      at = next;
    }
    return root;
  }

  join(a: string, b: string): void {
    this.add(a);
    this.add(b);
    const [x, y] = [this.rootOf(a), this.rootOf(b)];
    if (x !== y) this.#parent.set(x < y ? y : x, x < y ? x : y);
  }

  /** Root → its names, sorted. */
  groups(): Map<string, string[]> {
    const groups = new Map<string, string[]>();
    for (const name of [...this.#parent.keys()].sort()) {
      const root = this.rootOf(name);
      getOrInsert(groups, root, () => []).push(name);
    }
    return groups;
  }
}
