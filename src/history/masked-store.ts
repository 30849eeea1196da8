/**
 * A site's log store for other sites. What people and programs wrote stays here: records go as patterns with what follows
 * from them, and votes as counts. Free text goes only where somebody asks for it, and then masked as well as patterns and
 * known names can: hosts, people, paths, addresses, keys.
 */
import { createHash } from "node:crypto";
import type { FaultRecord } from "../model/fault-record.ts";
import { EMPTY_STORE, type LogStore } from "../model/log-store.ts";

/** Also as the end of a longer name: client_secret, dbPassword. */
const PASS = "pass(?:w(?:or)?d|phrase)?|pwd";
const KEY = `(?:api[_-]?key|access[_-]?key|secret\\w{0,20}|token|${PASS}|authorization|credential\\w{0,10}|basic|bearer|sig(?:nature)?)`;
const SECRET = `${KEY}["']?\\s*(?:[=:]+|\\bis\\b)\\s*`;
/** Of a path: letters of any script. */
const PART = String.raw`[\p{L}\p{N}_.@%+~#=$-]`;
/** In this order: what holds others comes first. The masks are those of log templates, so that masked events still match. */
const PRIVATE: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/\b[a-z][a-z0-9+.-]{1,15}:\/\/[^\s"'<>()]+/gi, "<URL>"],
  [/[\w.+-]+@[\w-]+(?:\.[\w-]+)*(?::[\w./~-]+)?/g, "<EMAIL>"],
  [new RegExp(`(${SECRET})(["'])(?!<)[^"']+\\2`, "gi"), "$1$2<STR>$2"],
  [new RegExp(`(${SECRET})(?:(?:bearer|basic)\\s+)?["']?[^\\s,;<"']+["']?`, "gi"), "$1<STR>"],
  [/(\s--?(?:api-?key|token|secret|passw(?:or)?d)[=\s]\s*)[^\s<]+/gi, "$1<STR>"],
  [/(\s-p\s+)[^\s<]+/g, "$1<STR>"],
  [/\b(passphrase\s+)(?!is\b)[^\s,;<]+/gi, "$1<STR>"],
  // Said without a sign between: what looks like a key, for "token" is also what models read.
  [new RegExp(`\\b((?:${KEY})\\s+)(?=[^\\s,;<]{0,80}[\\d=])[^\\s,;<]{4,}`, "gi"), "$1<STR>"],
  [/\b((?:bearer|basic)\s+)[^\s,;<]{6,}/gi, "$1<STR>"],
  [/\b((?:user(?:_?name)?|login|account|owner|uid|gid)["']?\s*[=:]\s*)[^\s,;<]+/gi, "$1<STR>"],
  [/\b((?:for|by|of|as) user )[^\s,;<]+/gi, "$1<STR>"],
  [/\b((?:accepted|failed) \S+ for (?:invalid user )?)[^\s<]+(?= from )/gi, "$1<STR>"],
  [/\b(?:[0-9a-f]{2}[:-]){5,19}[0-9a-f]{2}\b/gi, "<MAC>"],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, "<UUID>"],
  [/(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?!\.?\d)/g, "<IP>"],
  [
    /(?<![\w:])(?=:*[0-9a-f])(?:[0-9a-f]{0,4}:){2,7}(?:[0-9a-f]{1,4}|(?<=::))(?:%\w+)?(?![\w:])/gi,
    "<IP>",
  ],
  // A path with spaces ends where the text does, or a sign that no path has.
  [/(?<!\w)[A-Za-z]:[\\/][^"'<>|*?,;:\n]*|\\\\[^\s"'<>,;]+/g, "<PATH>"],
  [/[\w.%-]{0,80}%2F[^\s"'<>]*/gi, "<PATH>"],
  [/(?<![\w.-])[a-z][\w.-]{0,80}:(?=\/)[^\s"'<>,;]*/gi, "<HOST>:<PATH>"],
  [
    new RegExp(
      String.raw`(?<![\p{L}\p{N}_.\])>/])(?:~[\w.-]{0,40}|\.{1,2}|\$\w{1,40})?/${PART}+(?:/${PART}*)*`,
      "gu",
    ),
    "<PATH>",
  ],
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
  [/\b(?:AKIA|ASIA|eyJ|ghp_|gho_|hf_|sk-|xox[a-z]-|glpat-)[\w.-]{6,}/g, "<STR>"],
];
/** Names that say nothing of a site, whatever number follows. */
const COMMON =
  /^(?:node|host|gpu|rank|worker|machine|server|compute|leaf|spine|switch|job|train|test|master|head|pod|agent)?$/i;
/** Letters with numbers beside them, and no dots: names of machines and keys are such words, and few others. */
const NUMBERED = /(?<![\p{L}\d_<-])(?:[\p{L}_-]|\d|<NUM>)+(?:\[(?:[\d,-]|<NUM>)+\])?/gu;
/** What else has numbers: devices, types, units, and what training counts. */
const TECHNICAL =
  /^(?:mlx|ib|eth|bond|hsn|cuda|cudnn|nccl|rccl|hccl|ucx|torch|python|py|sm|xid|nvlink|nvswitch|pci|pcie|cpu|numa|socket|core|fp|bf|tf|int|uint|float|bfloat|half|conv|sha|md|utf|id|seq|step|iter|iteration|epoch|layer|layers|stage|shard|group|block|bucket|chunk|batch|tp|pp|dp|ep|cp|dim|port|thread|process|proc|pid|tid|local|global|retry|attempt|sig|errno|code|line|v|x|n|b|s|m|h|d|k|g|us|ns|ms|sec|secs|min|kb|mb|gb|tb|kib|mib|gib|tib|gbps|hz|khz|mhz|ghz|w|c|t|z|st|nd|rd|th)?$/i;

function isName(word: string): boolean {
  if (!/\p{L}/u.test(word.replaceAll("<NUM>", "")) || !/\d|<NUM>/.test(word)) return false;
  const letters = word.replaceAll("<NUM>", "0").split(/[^\p{L}]+/u);
  return letters.some((part) => !COMMON.test(part) && !TECHNICAL.test(part));
}

const LEAST_NAME = 3;
/** Longer than templates and texts of records are. */
const MOST_TEXT = 4000;

/**
 * `names`: of machines, jobs and people, which are masked wherever they stand, also with other numbers and other signs
 * between their parts; of names with a domain also the first part. Not the first names of people: "max" and "ray" are
 * words of logs.
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
            .map(spellings)
            .join("|")})(?:[\\d_.-]|<NUM>)*(?![a-z])`,
          "gi",
        );
  return (whole) => {
    const text = whole.slice(0, MOST_TEXT);
    const plain = PRIVATE.reduce((now, [pattern, mask]) => now.replace(pattern, mask), text);
    const known = own === null ? plain : plain.replace(own, "<HOST>");
    return known.replace(NUMBERED, (word) => (isName(word) ? "<STR>" : word));
  };
}

function spellings(stem: string): string {
  return stem
    .replace(/[*+?^${}()|[\]\\]/g, "\\$&")
    .replace(/[_.-]/g, "[_.-]?")
    .replace(/\d+/g, "(?:\\d|<NUM>){1,8}");
}

/**
 * Notes stay here; records whose pattern holds a name are left out, for without it they would match something else.
 * `texts`: also what healthy jobs log and what people wrote of records, masked.
 */
export function withoutSecrets(store: LogStore, names: Iterable<string>, texts: boolean): LogStore {
  const mask = masker(names);
  const records = store.records.flatMap((record) => maskedRecord(record, mask, texts) ?? []);
  const ids = new Set(records.map(({ id }) => id));
  const left = new Set(store.records.map(({ id }) => id).filter((id) => !ids.has(id)));
  const votes = Object.entries(store.votes)
    .filter(([id]) => !left.has(id))
    .map(([id, { confirmed, disputed }]) => [id, { confirmed, disputed, notes: [] }] as const);
  const known = { ...EMPTY_STORE, records, votes: Object.fromEntries(votes) };
  if (!texts) return known;
  const normal: Record<string, number> = {};
  for (const [text, seen] of Object.entries(store.normal)) {
    const key = mask(text);
    normal[key] = Math.max(seen, Object.hasOwn(normal, key) ? normal[key]! : 0);
  }
  return { ...known, jobs: store.jobs.map(nameless), normal };
}

function maskedRecord(
  record: FaultRecord,
  mask: (text: string) => string,
  texts: boolean,
): FaultRecord | null {
  const { match, id } = record;
  const pattern = match.regex?.replace(/\\(.)/g, "$1") ?? "";
  const literals = [...match.all, ...(match.any ?? []), ...(match.not ?? []), pattern, id];
  if (literals.some((text) => mask(text) !== text)) return null;
  if (!texts)
    return {
      ...record,
      title: id,
      meaning: "Confirmed at another site.",
      component: "as its owner knows",
      action: `Ask who looks after it: ${record.owner}.`,
      falseFriends: [],
      source: "confirmed by people of another site",
      example: match.all.join(" "),
    };
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
