/** Words and numbers for people. */

/** [0, 1, 2, 5] → "0–2, 5"; cut after `most` parts. */
export function ranges(numbers: readonly number[], most = 12): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === sorted[j]! + 1) j++;
    if (j - i >= 2) parts.push(`${sorted[i]}–${sorted[j]}`);
    else for (let k = i; k <= j; k++) parts.push(String(sorted[k]));
    i = j + 1;
  }
  if (parts.length <= most) return parts.join(", ");
  return `${parts.slice(0, most).join(", ")}, … (${sorted.length} in all)`;
}

/** "rank 3", "ranks 3 and 5", "ranks 0–7". */
export function rankWords(ranks: readonly number[]): string {
  if (ranks.length === 1) return `rank ${ranks[0]}`;
  if (ranks.length === 2) return `ranks ${ranks[0]} and ${ranks[1]}`;
  return `ranks ${ranges(ranks)}`;
}

/** "1 rank", "3 ranks". */
export function count(n: number, noun: string): string {
  return `${thousands(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** 12345 → "12,345"; toLocaleString would load ICU, a tenth of a short run. */
export function thousands(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function cutText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/**
 * Text from a stranger's file for a terminal: what would move the cursor, change colours, break the line
 * or turn the reading direction becomes a visible mark.
 */
export function harmless(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}

/** A share as people read it: 0.934 → "93 %", with one digit "93.4 %"; "–" for what is not a number. */
export function percent(share: number, digits = 0): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(digits)} %` : "–";
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** "slow in 12 of the last 200 iterations, +80 % each" */
export function intermittentWords(slow: number, of: number, ratio: number): string {
  return `slow in ${slow} of the last ${of} iterations, +${(100 * (ratio - 1)).toFixed(0)} % each`;
}

/** "345 ms", "18.2 ms", "1.60 s". */
export function durationWords(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return `${ms >= 100 ? Math.round(ms) : Number(ms.toPrecision(3))} ms`;
}
