/** What people do about incidents: who looks after one, what was said of it, whether the verdict was right, what is muted. */
import type { Cause } from "./cause.ts";
import type { Incident } from "./incident.ts";

export interface Handling {
  readonly incident: string;
  /** Somebody knew of it after so many relapses: until the next one it need not be repeated. */
  readonly acknowledged: (Deed & { readonly relapses: number }) | null;
  readonly assignee: string | null;
  /** It is the same as this incident. */
  readonly mergedInto: string | null;
  /** Resolved, and somebody says that it is not over. */
  readonly reopened: (Deed & { readonly why: string }) | null;
  readonly commentCount: number;
  /** The last word on whether the verdict was right. */
  readonly judgement: (Deed & Judgement) | null;
}

/** With what was said: only for who looks at the incident, for it may be long. */
export interface CommentedHandling extends Handling {
  /** Oldest first. */
  readonly comments: readonly Comment[];
}

export type Comment = Deed & { readonly text: string };

interface Deed {
  readonly who: string;
  readonly atMs: number;
}

/** Whether a verdict was right, and what was true instead. */
export interface Judgement {
  readonly isRight: boolean;
  /** The machine that it really was; null: no machine, or nobody knows. */
  readonly machine: string | null;
  readonly cause: Cause | null;
  /** Patterns of the jobs that the judge may see: it counts for these; null for all. */
  readonly jobs: readonly string[] | null;
  /** What the verdict said when it was judged, so that it can be counted without the incident. */
  readonly said: SaidThen;
}

export interface SaidThen {
  readonly job: string;
  readonly openedMs: number;
  readonly kind: Incident["kind"];
  readonly cause: Cause | null;
  /** As people read it. */
  readonly confidence: number;
  /** Before the site's own judgements corrected it: what they are learnt from. */
  readonly stated: number;
  readonly machines: readonly string[];
  /** Records of the library that the verdict rests on. */
  readonly records: readonly string[];
}

/** Incidents that nobody is alerted of: all that is named must fit; * is any text, ? any character. */
export interface Mute {
  readonly id: string;
  /** Alerts are held back because of planned work, or because people know. */
  readonly kind: "mute" | "maintenance";
  readonly job: string | null;
  readonly machine: string | null;
  readonly cause: string | null;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly who: string;
  readonly why: string;
}

/** The incident that it is the same as; itself where it is merged into none, or where merges run in a circle. */
export function rootOf(
  handlings: ReadonlyMap<string, Pick<Handling, "mergedInto">>,
  id: string,
): string {
  const passed = new Set([id]);
  let at = id;
  for (;;) {
    const next = handlings.get(at)?.mergedInto ?? null;
    if (next === null) return at;
    // Two services may have merged two incidents into each other.
    if (passed.has(next)) return id;
    passed.add(next);
    at = next;
  }
}

/** null also where it has come back since. */
export function acknowledgedNow(
  { acknowledged }: Pick<Handling, "acknowledged">,
  { relapses }: Pick<Incident, "relapses">,
): Handling["acknowledged"] {
  return acknowledged !== null && acknowledged.relapses >= relapses ? acknowledged : null;
}

export function saidThen({ job, openedMs, kind, verdict, machines }: Incident): SaidThen {
  const [first] = verdict?.suspects ?? [];
  const findings = verdict?.findings ?? [];
  const records = findings
    .filter(({ id }) => first?.evidence.includes(id))
    .flatMap(({ data }) => [
      ...("record" in data && typeof data.record === "string" ? [data.record] : []),
      ...("signature" in data && typeof data.signature === "string" ? [data.signature] : []),
    ]);
  const confidence = verdict?.confidence ?? 0;
  const corrected = findings.map(({ data }) => data).find((data) => data.fact === "site-judged");
  return {
    job,
    openedMs,
    kind,
    cause: first?.cause ?? null,
    confidence,
    stated: corrected?.stated ?? confidence,
    machines,
    records: [...new Set(records)].slice(0, 16),
  };
}
