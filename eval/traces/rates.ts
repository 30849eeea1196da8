/** Counts by kind with Wilson's intervals, as tables. */
import { wilson } from "../../src/maths/wilson.ts";

interface Count {
  hits: number;
  all: number;
}

export class Rates {
  readonly #title: string;
  readonly #byKind = new Map<string, Count>();

  constructor(title: string) {
    this.#title = title;
  }

  add(kind: string, isHit: boolean): void {
    const known = this.#byKind.get(kind) ?? { hits: 0, all: 0 };
    this.#byKind.set(kind, { hits: known.hits + Number(isHit), all: known.all + 1 });
  }

  #count(kinds: readonly string[]): Count {
    const counts = kinds.map((kind) => this.#byKind.get(kind) ?? { hits: 0, all: 0 });
    return counts.reduce((a, b) => ({ hits: a.hits + b.hits, all: a.all + b.all }), {
      hits: 0,
      all: 0,
    });
  }

  #cells(kinds: readonly string[]): string[] {
    const { hits, all } = this.#count(kinds);
    const [low, high] = wilson(hits, all);
    return [`${hits}/${all}`, `${percent(low)} – ${percent(high)}`];
  }

  table(kinds: readonly string[]): string {
    return Rates.columns(
      [this],
      kinds.filter((kind) => this.#byKind.has(kind)),
    );
  }

  /** One row a kind, two columns a rate. */
  static columns(rates: readonly Rates[], kinds: readonly string[]): string {
    const head = ["", ...rates.flatMap((rate) => [rate.#title, "95 %"])];
    const rows = kinds.map((kind) => [kind, ...rates.flatMap((rate) => rate.#cells([kind]))]);
    const total = ["all", ...rates.flatMap((rate) => rate.#cells(kinds))];
    return [head, head.map(() => "---"), ...rows, total]
      .map((row) => `| ${row.join(" | ")} |`)
      .join("\n");
  }
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
