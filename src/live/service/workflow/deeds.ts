/**
 * What people do about incidents is kept as rows of the audit trail and nowhere else: rows are only ever added, so two
 * people, or two services, cannot overwrite each other, and the trail is complete by itself.
 */
import { CAUSES, type Cause } from "../../../model/cause.ts";
import type { AuditRow } from "../../../history/history.ts";
import type { Handling, Judgement, Mute, SaidThen } from "../../../model/handling.ts";

export type Deed =
  | { readonly do: "acknowledge" | "unacknowledge" | "unmerge" | "close" }
  /** null: nobody. */
  | { readonly do: "assign"; readonly to: string | null }
  | { readonly do: "comment"; readonly text: string }
  | { readonly do: "judge"; readonly judgement: Judgement }
  | { readonly do: "merge"; readonly into: string }
  | { readonly do: "reopen"; readonly why: string };

export type MuteDeed =
  | { readonly do: "mute"; readonly mute: Omit<Mute, "who"> }
  | { readonly do: "unmute"; readonly id: string };

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
    default:
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
    comments: [],
    judgement: null,
  };
}

/** Of one incident, oldest first. */
const MOST_COMMENTS = 500;

export function after(handling: Handling, { what, who, atMs, detail }: AuditRow): Handling {
  const deed = { who, atMs };
  switch (what) {
    case "acknowledge":
      // Who was first stays: two people press at once.
      return { ...handling, acknowledged: handling.acknowledged ?? deed };
    case "unacknowledge":
      return { ...handling, acknowledged: null };
    case "assign":
      return { ...handling, assignee: detail === "" ? null : detail };
    case "comment":
      return {
        ...handling,
        comments: [...handling.comments, { ...deed, text: detail }].slice(-MOST_COMMENTS),
      };
    case "judge": {
      const judgement = judgementOf(detail);
      return judgement === null ? handling : { ...handling, judgement: { ...deed, ...judgement } };
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
  const found = objectOf(detail) as Partial<Judgement> | null;
  const said = found?.said as Partial<SaidThen> | undefined;
  if (typeof found?.isRight !== "boolean" || typeof said?.confidence !== "number") return null;
  return {
    isRight: found.isRight,
    machine: typeof found.machine === "string" ? found.machine : null,
    cause: causeOf(found.cause),
    said: {
      job: said.job ?? "",
      openedMs: said.openedMs ?? 0,
      kind: said.kind ?? "undetermined",
      cause: causeOf(said.cause),
      confidence: said.confidence,
      stated: said.stated ?? said.confidence,
      machines: textsOf(said.machines),
      records: textsOf(said.records),
    },
  };
}

/** null for what an older or newer service wrote in another way. */
export function muteOf({ detail, who }: Pick<AuditRow, "detail" | "who">): Mute | null {
  const found = objectOf(detail) as Partial<Mute> | null;
  const { id, fromMs, untilMs, kind } = found ?? {};
  if (typeof id !== "string" || typeof fromMs !== "number" || typeof untilMs !== "number")
    return null;
  const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
  return {
    id,
    kind: kind === "maintenance" ? kind : "mute",
    job: text(found?.job),
    machine: text(found?.machine),
    cause: text(found?.cause),
    fromMs,
    untilMs,
    who,
    why: text(found?.why) ?? "",
  };
}

function objectOf(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

function causeOf(value: unknown): Cause | null {
  return CAUSES.find((cause) => cause === value) ?? null;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
