/** Durations, paces and numbers in words of fixed form, so that columns of them do not jump. */

/** "850 ms", "12.4 s", "3 min 05 s", "2 h 07 min", "3 d 4 h". */
export function durationWords(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  const long = Math.max(0, ms);
  if (long < 1000) return `${Math.round(long)} ms`;
  if (long < 59_950) return `${(long / 1000).toFixed(1)} s`;
  return spanWords(long);
}

/** As long as something lasts, in whole seconds: "8 s", "3 min 05 s", "2 h 07 min". */
export function spanWords(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${two(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** How far a pace is from the healthy one: "2.1× slower", "as usual"; "" before both are known. */
export function slowerWords(levelMs: number | null, healthyMs: number | null): string {
  if (levelMs === null || healthyMs === null || healthyMs <= 0) return "";
  const factor = levelMs / healthyMs;
  if (factor > 10) return `${Math.round(factor)}× slower`;
  return isSlower(levelMs, healthyMs) ? `${factor.toFixed(2)}× slower` : "as usual";
}

/** By more than iterations of a healthy job differ. */
export function isSlower(levelMs: number | null, healthyMs: number | null): boolean {
  return levelMs !== null && healthyMs !== null && healthyMs > 0 && levelMs / healthyMs >= 1.03;
}

/** 0.934 → "93 %"; never 100 for what is not certain. */
export function percentWords(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const percent = Math.round(share * 100);
  return `${percent === 100 && share < 1 ? 99 : Math.min(100, Math.max(0, percent))} %`;
}

/** Three digits that count: 0.042, 1.25, 12.3, 123, 12,345. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 99.95) return thousands(Math.round(value));
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.0995 || size === 0) return value.toFixed(2);
  return value.toFixed(3);
}

export function thousands(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function two(value: number): string {
  return String(value).padStart(2, "0");
}
