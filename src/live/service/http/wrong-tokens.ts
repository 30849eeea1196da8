/**
 * Who tries tokens. An address that sends many wrong ones is turned away for a while. One agent with an old token
 * repeats the same one for hours, and its neighbours behind the same address must not suffer: right tokens are turned
 * away, too, only where several different ones were tried, which is guessing.
 */
export interface WrongTokens {
  /** A wrong token came; returns the seconds that the address is turned away, 0 for not yet. */
  wrong(address: string, digest: string): number;
  /** Seconds that also right tokens of this address are turned away. */
  guessing(address: string): number;
}

const MOST_WRONG = 20;
const DIFFERENT_IS_GUESSING = 5;
const WINDOW_MS = 60_000;
const AWAY_MS = 60_000;
const MOST_ADDRESSES = 4096;

interface Attempts {
  sinceMs: number;
  count: number;
  untilMs: number;
  readonly different: Set<string>;
}

export function watchWrongTokens(nowMs: () => number): WrongTokens {
  const byAddress = new Map<string, Attempts>();

  /** The oldest goes when there are too many: whoever has so many addresses is not stopped by this. */
  const attemptsOf = (key: string, now: number): Attempts => {
    let found = byAddress.get(key);
    if (!found || (now - found.sinceMs >= WINDOW_MS && now >= found.untilMs)) {
      byAddress.delete(key);
      const oldest = byAddress.keys().next();
      if (byAddress.size >= MOST_ADDRESSES && !oldest.done) byAddress.delete(oldest.value);
      found = { sinceMs: now, count: 0, untilMs: 0, different: new Set() };
      byAddress.set(key, found);
    }
    return found;
  };

  const seconds = (attempts: Attempts, now: number): number =>
    Math.max(0, Math.ceil((attempts.untilMs - now) / 1000));

  return {
    wrong(address, digest) {
      const now = nowMs();
      const attempts = attemptsOf(network(address), now);
      attempts.count++;
      if (attempts.different.size < DIFFERENT_IS_GUESSING) attempts.different.add(digest);
      if (attempts.count > MOST_WRONG && attempts.untilMs <= now) attempts.untilMs = now + AWAY_MS;
      return seconds(attempts, now);
    },
    guessing(address) {
      const attempts = byAddress.get(network(address));
      if (!attempts || attempts.different.size < DIFFERENT_IS_GUESSING) return 0;
      return seconds(attempts, nowMs());
    },
  };
}

/** IPv6 hands out whole /64 networks to single machines. */
function network(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, "");
  if (!plain.includes(":")) return plain;
  const [left = "", right] = plain.replace(/%.*$/, "").split("::");
  const head = left === "" ? [] : left.split(":");
  const tail = right === undefined || right === "" ? [] : right.split(":");
  const gap = right === undefined ? 0 : Math.max(0, 8 - head.length - tail.length);
  const groups = [...head, ...Array.from({ length: gap }, () => "0"), ...tail];
  return groups.slice(0, 4).join(":");
}
