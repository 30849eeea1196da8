/** Lines that sound harmless and differ between nodes: versions. */
import { getOrInsert } from "../../base/group-by.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { ContextCause } from "./cause.ts";
import type { LogNodes } from "./nodes.ts";
import type { NodeSuspect } from "./spatial-evidence.ts";

const NODE_WEIGHT = 0.6;
/** Of versions that nobody in particular printed: two runs in one file look the same. */
const UNKNOWN_WEIGHT = 0.45;
const MOST_TITLE = 140;
const NCCL = /\bNCCL version (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?(?:\+\w{1,20}(?:\.\d{1,3})?)?)/;

export function versionCauses(
  digest: LogDigest,
  nodes: LogNodes,
  ranked: readonly NodeSuspect[],
  texts: readonly string[],
): ContextCause[] {
  return [...ncclVersions(digest, nodes), ...oddVersions(ranked, texts)].slice(0, 1);
}

/** All ranks of a communicator must run the same; NCCL notices only some of the differences. */
function ncclVersions({ kept, files }: LogDigest, { of, names }: LogNodes): ContextCause[] {
  const nodesOf = new Map<string, Set<number>>();
  const first = new Map<string, number>();
  kept.forEach(({ stream, text }, i) => {
    const version = NCCL.exec(text)?.[1];
    if (version === undefined) return;
    getOrInsert(nodesOf, version, () => new Set<number>()).add(of[stream]!);
    if (!first.has(version)) first.set(version, i);
  });
  if (nodesOf.size < 2) return [];
  const bySize = [...nodesOf].sort((a, b) => a[1].size - b[1].size);
  const [odd, printed] = bySize[0]!;
  const who = [...printed].filter((node) => node >= 0).map((node) => names[node]!);
  const { file, line, text } = kept[first.get(odd)!]!;
  const at = { file: files[file]!.name, line, text };
  const isKnown = who.length > 0 && printed.size < bySize.at(-1)![1].size;
  const all = [...nodesOf.keys()].sort().join(" and ");
  return [
    cause(isKnown ? NODE_WEIGHT : UNKNOWN_WEIGHT, isKnown ? who : [], {
      title: `NCCL ${all} in one job`,
      meaning: `Processes of the job print different versions of NCCL${isKnown ? `; ${who.join(", ")} run ${odd}` : ""}. All processes need the same version: otherwise communicators fail or hang unpredictably.`,
      at,
    }),
  ];
}

/** A node that runs another version than all others. */
function oddVersions(ranked: readonly NodeSuspect[], texts: readonly string[]): ContextCause[] {
  const found = ranked.flatMap(({ name, evidence }) =>
    evidence
      .filter(({ kind, template }) => kind === "variant" && /version/i.test(texts[template] ?? ""))
      .map(({ template }) => ({ name, text: texts[template]!.trim().slice(0, MOST_TITLE) })),
  );
  const [first] = found;
  if (!first || found.length > 2) return [];
  return [
    cause(NODE_WEIGHT, [first.name], {
      title: `${first.name} runs another version than the other nodes`,
      meaning: `In "${first.text}" the value of ${first.name} differs from that of all others, and no line says that anything else broke.`,
      at: null,
    }),
  ];
}

function cause(
  weight: number,
  nodes: readonly string[],
  { title, meaning, at }: Pick<ContextCause["cause"], "title" | "meaning" | "at">,
): ContextCause {
  const where = nodes.length === 1 ? nodes[0]! : "each node";
  return {
    weight,
    cause: {
      category: "user.software",
      cause: "software-version",
      signature: "context.version-differs",
      title,
      role: "root",
      owner: "user",
      meaning,
      action: `Compare the image, driver and libraries of ${where} with another node's (nvidia-smi, python -c "import torch; print(torch.version.cuda, torch.cuda.nccl.version())").`,
      falseFriends: ["A mixed fleet may run two versions on purpose."],
      at,
      places: at ? [at] : [],
      nodes,
      ranks: [],
      captures: {},
    },
  };
}
