/** What the service said of a dry run, as what it is about to do: "dry run, would run […]" → "run […]". */
export function planOf(outcome: string): string {
  const words = "dry run, would ";
  const at = outcome.lastIndexOf(words);
  return at < 0 ? outcome : outcome.slice(at + words.length);
}
