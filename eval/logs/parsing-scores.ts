/** How well groups of lines agree with the true ones. */

export interface ParsingScore {
  /** Share of lines whose group is exactly the true one. */
  readonly ga: number;
  /** F1 over groups: those that are exactly a true one. */
  readonly fga: number;
  readonly templates: number;
  readonly truths: number;
}

export function parsingScore(groups: ArrayLike<number>, events: readonly string[]): ParsingScore {
  const sizes = new Map<number, number>();
  const truths = new Map<string, number>();
  const both = new Map<string, { group: number; event: string; lines: number }>();
  events.forEach((event, i) => {
    const group = groups[i]!;
    sizes.set(group, (sizes.get(group) ?? 0) + 1);
    truths.set(event, (truths.get(event) ?? 0) + 1);
    const key = `${group} ${event}`;
    const known = both.get(key);
    if (known) known.lines++;
    else both.set(key, { group, event, lines: 1 });
  });
  let right = 0;
  let lines = 0;
  for (const { group, event, lines: count } of both.values()) {
    if (sizes.get(group) !== count || truths.get(event) !== count) continue;
    right++;
    lines += count;
  }
  return {
    ga: lines / events.length,
    fga: (2 * right) / (sizes.size + truths.size),
    templates: sizes.size,
    truths: truths.size,
  };
}

export function meanScore(scores: readonly ParsingScore[]): { ga: number; fga: number } {
  const mean = (of: (score: ParsingScore) => number): number =>
    scores.reduce((sum, score) => sum + of(score), 0) / scores.length;
  return { ga: mean((score) => score.ga), fga: mean((score) => score.fga) };
}
