/** Incidents that fit words, and what they come to: by day, by job, by machine. */
import type { Incident } from "../live/api.ts";
import { jobOf, KIND } from "../fleet/kinds.ts";

/** Incidents in which every word occurs, whatever its case: in names, causes, kinds, states and sentences. */
export function matching(incidents: readonly Incident[], words: string): Incident[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return [...incidents];
  return incidents.filter((incident) => {
    const text = textOf(incident);
    return wanted.every((word) => occursIn(text, word));
  });
}

/** A number only as a whole: rank 17 is not in "117,139". */
function occursIn(text: string, word: string): boolean {
  if (!/^\d+$/.test(word)) return text.includes(word);
  return new RegExp(`(?<!\\d|\\d[.,])${word}(?!\\d|[.,]\\d)`).test(text);
}

function textOf(incident: Incident): string {
  const { id, run, kind, state, ending, machines, ranks, summary, verdict } = incident;
  const suspects = verdict?.suspects ?? [];
  return [
    id,
    jobOf(incident) ?? "",
    run,
    kind,
    KIND[kind]?.says ?? "",
    state === "resolved" ? "resolved" : "open",
    state,
    ending ?? "",
    ...machines,
    ...ranks.map((rank) => `rank ${rank}`),
    ...suspects.flatMap(({ cause, name, link }) => [cause, name ?? "", ...(link ?? [])]),
    summary,
    verdict?.summary ?? "",
  ]
    .join("\n")
    .toLowerCase();
}

export interface Day {
  /** "2026-11-18", in UTC. */
  readonly day: string;
  readonly incidents: number;
  readonly wastedGpuMs: number;
}

/** By the day on which they began, the latest first. */
export function byDay(incidents: readonly Incident[]): Day[] {
  const days = new Map<string, Day>();
  for (const { onsetMs, wastedGpuMs } of incidents) {
    if (!(Math.abs(onsetMs) < 8e15)) continue;
    const day = new Date(onsetMs).toISOString().slice(0, 10);
    const known = days.get(day) ?? { day, incidents: 0, wastedGpuMs: 0 };
    days.set(day, {
      day,
      incidents: known.incidents + 1,
      wastedGpuMs: known.wastedGpuMs + wastedGpuMs,
    });
  }
  return [...days.values()].sort((a, b) => (a.day < b.day ? 1 : -1));
}

export interface Named {
  readonly name: string;
  readonly incidents: number;
}

/** Jobs, or machines, by how many of the incidents are about them. */
export function mostNamed(
  incidents: readonly Incident[],
  namesOf: (incident: Incident) => readonly string[],
  most: number,
): Named[] {
  const counts = new Map<string, number>();
  for (const incident of incidents)
    for (const name of new Set(namesOf(incident))) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, incidents: count }))
    .sort((a, b) => b.incidents - a.incidents || (a.name < b.name ? -1 : 1))
    .slice(0, most);
}
