/**
 * Episodes that other machines have as well, at other times, are how a metric behaves. A scrape every ten seconds of
 * iterations of a third of that falls into the same part of the iteration for minutes: machine after machine then seems
 * to compute less and to send more.
 */
import type { Episode } from "./episodes.ts";

/** As long and as strong as this share of it is comparable. */
const AS_LONG = 0.5;
const AS_STRONG = 0.6;
/** So many others, and this share of the machines. */
const LEAST_OTHERS = 2;
const OTHERS_SHARE = 0.1;
const MOST_CANDIDATES = 500;

/** `episodes` are of one view. Those shorter than `leastS` accuse nobody and are kept as they are. */
export function extraordinary(
  episodes: readonly Episode[],
  machines: number,
  leastS: number,
): readonly Episode[] {
  const long = episodes.filter(({ fromS, toS }) => toS - fromS >= leastS);
  // Of very many, the weaker ones are how the metric behaves, or it would not be very many.
  long.sort((a, b) => weightOf(b) - weightOf(a));
  const tooMany = new Set(long.splice(MOST_CANDIDATES));
  const enough = Math.max(LEAST_OTHERS, OTHERS_SHARE * machines);
  const dropped = new Set(
    long.filter((episode) => {
      const alike = new Set<number>();
      for (const other of episodes) {
        if (other.machine !== episode.machine && isAlike(other, episode)) alike.add(other.machine);
      }
      return alike.size >= enough;
    }),
  );
  if (dropped.size + tooMany.size === 0) return episodes;
  return episodes.filter((episode) => !dropped.has(episode) && !tooMany.has(episode));
}

function weightOf({ fromS, toS, strength }: Episode): number {
  return (toS - fromS) * strength;
}

function isAlike(other: Episode, episode: Episode): boolean {
  const otherS = other.toS - other.fromS;
  const thisS = episode.toS - episode.fromS;
  if (otherS < AS_LONG * thisS || other.strength < AS_STRONG * episode.strength) return false;
  const togetherS = Math.min(other.toS, episode.toS) - Math.max(other.fromS, episode.fromS);
  return togetherS < 0.5 * Math.min(otherS, thisS);
}
