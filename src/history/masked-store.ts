/** A site's log store for other sites: without names of hosts and people, paths, addresses, keys. */
import { createHash } from "node:crypto";
import type { FaultRecord } from "../model/fault-record.ts";
import { EMPTY_STORE, type LogStore } from "../model/log-store.ts";

/** Also as the end of a longer name: client_secret, dbPassword. */
const SECRET =
  "(?:api[_-]?key|access[_-]?key|secret\\w{0,20}|token|passw(?:or)?d|pwd|authorization|credential\\w{0,10})[\"']?\\s*[=:]\\s*";
/** In this order: what holds others comes first. The masks are those of log templates, so that masked events still match. */
const PRIVATE: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/\b[a-z][a-z0-9+.-]{1,15}:\/\/[^\s"'<>()]+/gi, "<URL>"],
  [/[\w.+-]+@[\w-]+(?:\.[\w-]+)*/g, "<EMAIL>"],
  [new RegExp(`(${SECRET})(["'])(?!<)[^"']+\\2`, "gi"), "$1$2<STR>$2"],
  [new RegExp(`(${SECRET})(?:(?:bearer|basic)\\s+)?["']?[^\\s,;<"']+["']?`, "gi"), "$1<STR>"],
  [/(\s--?(?:api-?key|token|secret|passw(?:or)?d)[=\s]\s*)[^\s<]+/gi, "$1<STR>"],
  [/\b(bearer\s+)[^\s,;<]{6,}/gi, "$1<STR>"],
  [/\b((?:user(?:_?name)?|login|account|owner|uid|gid)["']?\s*[=:]\s*)[^\s,;<]+/gi, "$1<STR>"],
  [/\b((?:for|by|of|as) user )[^\s,;<]+/gi, "$1<STR>"],
  [/\b((?:accepted|failed) \S+ for (?:invalid user )?)[^\s<]+(?= from )/gi, "$1<STR>"],
  [/\b(?:[0-9a-f]{2}[:-]){5,19}[0-9a-f]{2}\b/gi, "<MAC>"],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, "<UUID>"],
  [/(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?!\.?\d)/g, "<IP>"],
  [/(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(?:%\w+)?(?![\w:])/gi, "<IP>"],
  [/(?<![\w.\])>/])~?\/[\w.@%+~#=$-]+(?:\/[\w.@%+~#=$-]*)*/g, "<PATH>"],
  [/\b[A-Za-z]:\\[^\s"'<>,;]+|\\\\[^\s"'<>,;]+/g, "<PATH>"],
  [
    /\b[a-z0-9][\w-]{0,62}(?:\.[a-z0-9][\w-]{0,62}){0,8}\.(?:com|net|org|edu|gov|mil|io|ai|dev|info|biz|arpa|local|localdomain|internal|intranet|lan|corp|home|cluster|svc|cloud|[a-z]{2})\b(?!\()(?:(?::\d{1,5})?(?:\/[\w.@:+-]+)+)?/gi,
    "<HOST>",
  ],
  // A name with a number that is said to be a machine's.
  [
    /\b((?:host(?:_?name)?|node(?:_?(?:name|list))?|machine)["']?\s*[=:]\s*["']?)(?!(?:node|host|gpu|rank|worker|machine)[_-]?(?:\d|<NUM>))[a-z][a-z_.[-]*(?:\d|<NUM>)(?:[\w.,[\]-]|<NUM>)*/gi,
    "$1<HOST>",
  ],
  // Keys and hashes: long, with letters and digits mixed.
  [/\b(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])[\w+/=-]{24,}/gi, "<STR>"],
  [/\b(?:AKIA|ASIA|ghp_|gho_|hf_|sk-|xox[a-z]-|glpat-)[\w-]{8,}/g, "<STR>"],
];
/** Names that say nothing of a site, whatever number follows. */
const COMMON =
  /^(?:node|host|gpu|rank|worker|machine|server|compute|leaf|spine|switch|job|train|test|master|head|pod|agent)?$/i;
const LEAST_NAME = 3;
/** Longer than templates and texts of records are. */
const MOST_TEXT = 4000;

/**
 * `names`: of machines, jobs and people, which are masked wherever they stand, also with other numbers; of names with a
 * domain also without it. Not the first names of people: "max" and "ray" are words of logs.
 */
export function masker(names: Iterable<string>): (text: string) => string {
  const stems = new Set(
    [...names]
      .flatMap((name) => [name, name.split(name.includes("@") ? "@" : ".")[0]!])
      .map((name) => name.toLowerCase().replace(/[\d_.-]+$/, ""))
      .filter((stem) => stem.length >= LEAST_NAME && !COMMON.test(stem)),
  );
  const own =
    stems.size === 0
      ? null
      : new RegExp(
          `(?<![a-z0-9])(?:${[...stems]
            .sort((a, b) => b.length - a.length)
            .map((stem) => stem.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
            .join("|")})(?:[\\d_.-]|<NUM>)*(?![a-z])`,
          "gi",
        );
  return (whole) => {
    const text = whole.slice(0, MOST_TEXT);
    const plain = PRIVATE.reduce((now, [pattern, mask]) => now.replace(pattern, mask), text);
    return own === null ? plain : plain.replace(own, "<HOST>");
  };
}

/** Notes stay here; records whose pattern holds a name are left out, for without it they would match something else. */
export function withoutSecrets(store: LogStore, names: Iterable<string>): LogStore {
  const mask = masker(names);
  const normal: Record<string, number> = {};
  for (const [text, seen] of Object.entries(store.normal)) {
    const key = mask(text);
    normal[key] = Math.max(seen, Object.hasOwn(normal, key) ? normal[key]! : 0);
  }
  const records = store.records.flatMap((record) => maskedRecord(record, mask) ?? []);
  const ids = new Set(records.map(({ id }) => id));
  const left = new Set(store.records.map(({ id }) => id).filter((id) => !ids.has(id)));
  const votes = Object.entries(store.votes)
    .filter(([id]) => !left.has(id))
    .map(([id, { confirmed, disputed }]) => [id, { confirmed, disputed, notes: [] }] as const);
  return {
    ...EMPTY_STORE,
    jobs: store.jobs.map(nameless),
    normal,
    records,
    votes: Object.fromEntries(votes),
  };
}

function maskedRecord(record: FaultRecord, mask: (text: string) => string): FaultRecord | null {
  const { match, id } = record;
  const pattern = match.regex?.replace(/\\(.)/g, "$1") ?? "";
  const literals = [...match.all, ...(match.any ?? []), ...(match.not ?? []), pattern, id];
  if (literals.some((text) => mask(text) !== text)) return null;
  return {
    ...record,
    title: mask(record.title),
    meaning: mask(record.meaning),
    component: mask(record.component),
    action: mask(record.action),
    falseFriends: record.falseFriends.map(mask),
    source: mask(record.source),
    example: mask(record.example),
  };
}

/** The same for the same job, so that it is learnt once wherever it is imported. */
function nameless(job: string): string {
  if (/^job-[0-9a-f]{24}$/.test(job)) return job;
  return `job-${createHash("sha256").update(`faultline ${job}`).digest("hex").slice(0, 24)}`;
}
