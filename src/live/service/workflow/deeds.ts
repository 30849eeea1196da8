/**
 * What people do about incidents is kept as rows of the audit trail and nowhere else: rows are only ever added, so two
 * people, or two services, cannot overwrite each other, and the trail is complete by itself.
 */
import { parseFields } from "../../../base/json.ts";
import { CAUSES, type Cause } from "../../../model/cause.ts";
import type { AuditRow } from "../../../history/history.ts";
import type { Comment, Handling, Judgement, Mute, SaidThen } from "../../../model/handling.ts";

export type Deed =
  | { readonly do: "unacknowledge" | "unmerge" | "close" }
  /** After how many relapses. */
  | { readonly do: "acknowledge"; readonly relapses: number }
  /** null: nobody. */
  | { readonly do: "assign"; readonly to: string | null }
  | { readonly do: "comment"; readonly text: string }
  | { readonly do: "judge"; readonly judgement: Judgement }
  | { readonly do: "merge"; readonly into: string }
  | { readonly do: "reopen"; readonly why: string };

export type MuteDeed =
  | { readonly do: "mute"; readonly mute: Omit<Mute, "who"> }
  | { readonly do: "unmute"; readonly id: string };

/** What somebody asks for, without what is known here. */
export type Asked =
  | Exclude<Deed, { do: "judge" | "acknowledge" }>
  | { readonly do: "acknowledge" }
  | {
      readonly do: "judge";
      readonly isRight: boolean;
      readonly machine: string | null;
      readonly cause: Cause | null;
    };
export type AskedMute = Omit<Mute, "id" | "who">;

const WORDS: ReadonlySet<string> = new Set<Deed["do"] | MuteDeed["do"]>([
  "acknowledge",
  "unacknowledge",
  "assign",
  "comment",
  "judge",
  "merge",
  "unmerge",
  "reopen",
  "close",
  "mute",
  "unmute",
]);

export function isDeed({ what }: Pick<AuditRow, "what">): boolean {
  return WORDS.has(what);
}

/** As the row's detail. */
export function detailOf(deed: Deed | MuteDeed): string {
  switch (deed.do) {
    case "assign":
      return deed.to ?? "";
    case "comment":
      return deed.text;
    case "judge":
      return JSON.stringify(deed.judgement);
    case "merge":
      return deed.into;
    case "reopen":
      return deed.why;
    case "mute":
      return JSON.stringify(deed.mute);
    case "unmute":
      return deed.id;
    case "acknowledge":
      return deed.relapses === 0 ? "" : String(deed.relapses);
    case "unacknowledge":
    case "unmerge":
    case "close":
      return "";
  }
}

export function untouched(incident: string): Handling {
  return {
    incident,
    acknowledged: null,
    assignee: null,
    mergedInto: null,
    reopened: null,
    commentCount: 0,
    judgement: null,
  };
}

export function after(handling: Handling, { what, who, atMs, detail }: AuditRow): Handling {
  const deed = { who, atMs };
  switch (what) {
    case "acknowledge":
      return {
        ...handling,
        acknowledged: firstOf(handling, { ...deed, relapses: Number(detail) || 0 }),
      };
    case "unacknowledge":
      return { ...handling, acknowledged: null };
    case "assign":
      return { ...handling, assignee: detail === "" ? null : detail };
    case "comment":
      return { ...handling, commentCount: handling.commentCount + 1 };
    case "judge": {
      const judgement = judgementOf(detail);
      if (judgement === null || !mayJudge(handling, who, judgement.jobs)) return handling;
      return { ...handling, judgement: { ...deed, ...judgement } };
    }
    case "merge":
      return { ...handling, mergedInto: detail };
    case "unmerge":
      return { ...handling, mergedInto: null };
    case "reopen":
      return { ...handling, reopened: { ...deed, why: detail } };
    case "close":
      return { ...handling, reopened: null };
    default:
      return handling;
  }
}

/** Who sees some jobs only changes no judgement but their own. */
export function mayJudge(
  { judgement }: Handling,
  who: string,
  jobs: readonly string[] | null,
): boolean {
  return jobs === null || judgement === null || (judgement.jobs !== null && judgement.who === who);
}

/** Who was first stays, for two people press at once; until the incident comes back. */
function firstOf(
  { acknowledged }: Handling,
  next: NonNullable<Handling["acknowledged"]>,
): Handling["acknowledged"] {
  return acknowledged !== null && acknowledged.relapses >= next.relapses ? acknowledged : next;
}

/** Who did something, and who was to look after something, without how they signed in. */
export function peopleIn(rows: readonly AuditRow[]): Set<string> {
  const all = rows.flatMap(({ who, what, detail }) => (what === "assign" ? [who, detail] : [who]));
  return new Set(
    [...new Set(all)]
      // "slack:U12 (ada)", "oidc:ada@acme.com".
      .flatMap(
        (who) => /^slack:(\S+)(?: \((.*)\))?$/.exec(who)?.slice(1) ?? who.replace(/^oidc:/, ""),
      )
      .filter((who) => who !== undefined && who !== "" && who !== "service"),
  );
}

const MOST_COMMENTS = 500;

/** The last ones, of rows of one incident, oldest first. */
export function commentsOf(rows: readonly AuditRow[]): readonly Comment[] {
  return rows
    .filter(({ what }) => what === "comment")
    .slice(-MOST_COMMENTS)
    .map(({ who, atMs, detail }) => ({ who, atMs, text: detail }));
}

/** Of the whole trail, oldest row first; by incident. */
export function handlingsOf(rows: readonly AuditRow[]): Map<string, Handling> {
  const handlings = new Map<string, Handling>();
  for (const row of rows)
    if (isDeed(row) && row.incident !== "")
      handlings.set(
        row.incident,
        after(handlings.get(row.incident) ?? untouched(row.incident), row),
      );
  return handlings;
}

/** null for what an older or newer service wrote in another way. */
function judgementOf(detail: string): Judgement | null {
  const { isRight, machine, cause, jobs, said } = parseFields(detail) ?? {};
  const then = (said ?? {}) as Partial<SaidThen>;
  if (typeof isRight !== "boolean" || typeof then.confidence !== "number") return null;
  return {
    isRight,
    machine: textOf(machine),
    cause: causeOf(cause),
    jobs: Array.isArray(jobs) ? textsOf(jobs) : null,
    said: {
      job: then.job ?? "",
      openedMs: then.openedMs ?? 0,
      kind: then.kind ?? "undetermined",
      cause: causeOf(then.cause),
      confidence: then.confidence,
      stated: then.stated ?? then.confidence,
      machines: textsOf(then.machines),
      records: textsOf(then.records),
    },
  };
}

/** null for what an older or newer service wrote in another way. */
export function muteOf({ detail, who }: Pick<AuditRow, "detail" | "who">): Mute | null {
  const { id, fromMs, untilMs, kind, job, machine, cause, why } = parseFields(detail) ?? {};
  if (typeof id !== "string" || typeof fromMs !== "number" || typeof untilMs !== "number")
    return null;
  return {
    id,
    kind: kind === "maintenance" ? kind : "mute",
    job: textOf(job),
    machine: textOf(machine),
    cause: textOf(cause),
    fromMs,
    untilMs,
    who,
    why: textOf(why) ?? "",
  };
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function causeOf(value: unknown): Cause | null {
  return CAUSES.find((cause) => cause === value) ?? null;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
