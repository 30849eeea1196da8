/** Counts of right answers by kind, as a table. */
import { wilson } from "../../src/maths/wilson.ts";

export class Tally {
  readonly #name: string;
  readonly #byKind = new Map<string, { right: number; all: number }>();
  readonly #shares: number[] = [];
  readonly #tookMs: number[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  add(kind: string, right: boolean, share: number, tookMs: number): void {
    const known = this.#byKind.get(kind) ?? { right: 0, all: 0 };
    this.#byKind.set(kind, { right: known.right + Number(right), all: known.all + 1 });
    this.#shares.push(share);
    this.#tookMs.push(tookMs);
  }

  static table(tallies: readonly Tally[], kinds: readonly string[]): string {
    const head = [
      "",
      ...kinds,
      "all",
      "95 % interval",
      "bytes read, mean",
      "most",
      "analysis, mean",
    ];
    const rows = tallies.map((tally) => tally.#row(kinds));
    return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
  }

  #row(kinds: readonly string[]): string[] {
    const counts = kinds.map((kind) => this.#byKind.get(kind) ?? { right: 0, all: 0 });
    const right = counts.reduce((sum, each) => sum + each.right, 0);
    const all = counts.reduce((sum, each) => sum + each.all, 0);
    const [low, high] = wilson(right, all);
    const percent = (share: number): string => `${(100 * share).toFixed(share < 0.05 ? 2 : 1)} %`;
    return [
      this.#name,
      ...counts.map((each) => `${each.right}/${each.all}`),
      all === 0 ? "none" : `${right}/${all} = ${percent(right / all)}`,
      all === 0 ? "–" : `${percent(low)} – ${percent(high)}`,
      all === 0 ? "–" : percent(mean(this.#shares)),
      all === 0 ? "–" : percent(Math.max(...this.#shares)),
      all === 0 ? "–" : `${(mean(this.#tookMs) / 1000).toFixed(2)} s`,
    ];
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
