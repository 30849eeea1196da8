/**
 * Exceptions that ended a program and that no record explains. Their class says little; whose code the innermost frame is
 * says more: the user's own, a framework's, or a package's that is built for a device and a version. What every process
 * raises is one story about the program, not one about each of them.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { FaultMatch } from "../../library/matcher.ts";
import { CAUSE_OF, type Category, type FaultRecord } from "../../model/fault-record.ts";
import type { FrameOwner, LogBlock, LogDigest } from "../../model/log-digest.ts";
import type { ContextCause } from "./cause.ts";
import { SETTLED } from "./signature-groups.ts";

/** A record of an exception's class alone: it knows no more than that the program raised it. */
function isGeneric({ layer, component, category }: FaultRecord): boolean {
  return layer === "python" && component === "training program" && category === "user.program";
}

interface Blamed {
  readonly category: Category;
  readonly owner: "user" | "framework";
  readonly weight: number;
  readonly says: string;
}

/** By whose the innermost frame is. */
const BLAMED: Readonly<Record<FrameOwner | "unknown", Blamed>> = {
  user: {
    category: "user.program",
    owner: "user",
    weight: 0.6,
    says: "It was raised in the program's own code.",
  },
  framework: {
    category: "framework",
    owner: "framework",
    weight: 0.4,
    says: "It was raised inside the framework: a bug there, or a call that it does not expect.",
  },
  driver: {
    category: "user.software",
    owner: "user",
    weight: 0.45,
    says: "It was raised in a package that is built for one device and driver version: the versions do not match.",
  },
  unknown: { category: "user.program", owner: "user", weight: 0.35, says: "" },
};
/** What a framework raises on purpose: it was asked for something that it does not do. */
const REFUSED = /^(?:[\w.]{0,80}\.)?(?:ValueError|AssertionError|NotImplementedError|KeyError)\b/;
const REFUSAL: Blamed = {
  category: "user.program",
  owner: "user",
  weight: 0.45,
  says: "The framework refused what the program asked of it.",
};
/** Raised by so many writers, or so often where writers are not known, it is the program's. */
const MANY = 3;
const MANY_BONUS = 0.12;
const MOST_WEIGHT = 0.75;
/** Beside a record that knows what broke. */
const BESIDE_SPECIFIC = 0.5;
const MOST_TITLE = 140;

interface Exceptions {
  readonly causes: readonly ContextCause[];
  /** Kept lines that they speak for; their records' groups say no more. */
  readonly spokenFor: ReadonlySet<number>;
}

export function exceptionCauses(
  digest: LogDigest,
  known: readonly (FaultMatch | null)[],
  isLeftOut: (kept: number) => boolean,
  isSettled: Uint8Array,
): Exceptions {
  const blocks = new Map(
    digest.blocks
      .filter(({ kind }) => kind === "traceback")
      .map((block) => [`${block.stream} ${block.line}`, block]),
  );
  const spokenFor = new Set<number>();
  const raised = new Map<string, { readonly lines: number[]; readonly block: LogBlock }>();
  digest.kept.forEach(({ stream, line, text }, i) => {
    const record = known[i]?.record;
    if (isLeftOut(i) || (record && !isGeneric(record))) return;
    const block = blocks.get(`${stream} ${line}`);
    if (!block) return;
    spokenFor.add(i);
    const key = record?.id ?? text.split(":", 1)[0]!;
    getOrInsert(raised, key, () => ({ lines: [], block })).lines.push(i);
  });
  const isSpecific = known.some(
    (match, i) => match?.record.role === "root" && !isGeneric(match.record) && !isLeftOut(i),
  );
  const causes = [...raised.values()]
    .map(({ lines, block }) => {
      const { cause, weight } = causeOf(digest, lines, block, known[lines[0]!]?.record ?? null);
      const isLived = lines.every((i) => isSettled[i] === 1);
      const share = (isSpecific ? BESIDE_SPECIFIC : 1) * (isLived ? SETTLED : 1);
      return { cause, weight: share * weight };
    })
    .sort((a, b) => b.weight - a.weight);
  return { causes, spokenFor };
}

function causeOf(
  digest: LogDigest,
  lines: readonly number[],
  { at, inner }: LogBlock,
  record: FaultRecord | null,
): ContextCause {
  const first = digest.kept[lines[0]!]!;
  const isRefused = inner === "framework" && REFUSED.test(first.text);
  const { category, owner, weight, says } = isRefused ? REFUSAL : BLAMED[inner ?? "unknown"];
  const ranks = new Set(lines.flatMap((i) => digest.streams[digest.kept[i]!.stream]!.rank ?? []));
  const isMany = lines.length >= MANY;
  // The class alone may be telling: a name that does not exist is nobody's but the program's.
  const own = category === record?.category ? record.certainty : 0;
  const sure = Math.max(own, weight) + (isMany ? MANY_BONUS : 0);
  const file = (i: number): string => digest.files[digest.kept[i]!.file]!.name;
  return {
    weight: Math.max(own, Math.min(MOST_WEIGHT, sure)),
    cause: {
      category,
      cause: CAUSE_OF[category],
      signature: record?.id ?? "exception",
      title: first.text.trim().slice(0, MOST_TITLE),
      role: "root",
      owner,
      meaning:
        `A Python exception ended ${isMany ? "several processes" : "a process"}${at === null ? "" : `, in ${at}`}. ${says}`.trim(),
      action:
        record?.action ??
        "Read the traceback from its last frame up. If the same data and code fail on every rank it is the program; if one rank alone fails, look at its node.",
      falseFriends: ["A broken machine can make a correct program raise any exception."],
      at: { file: file(lines[0]!), line: first.line, text: first.text },
      places: lines.map((i) => ({ file: file(i), line: digest.kept[i]!.line })),
      nodes: [],
      ranks: [...ranks].sort((a, b) => a - b),
      captures: {},
    },
  };
}
