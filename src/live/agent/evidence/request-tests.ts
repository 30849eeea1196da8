/** What a service asks the ranks of this machine to do at the end of an iteration: tests of GPUs and links, or a profile. */
import { basename } from "node:path";
import { count, rankWords } from "../../../base/text.ts";
import type {
  AgentReply,
  PrepareTestsRequest,
  ProfileRequest,
  ReadTestsRequest,
  ValidateRequest,
} from "../../wire/messages.ts";
import { refused } from "../rings/answer-operators.ts";
import { answers, ask, profileRequest, validationRequest, type Request } from "../rings/control.ts";
import { isAlive, type FoundRing } from "../rings/discover.ts";
import { readSmall } from "./evidence.ts";
import { nameOf } from "./request-stacks.ts";
import { openingError } from "../rings/ring-file.ts";
import { changedSince, sidecarsOf } from "./sidecars.ts";
import type { SlowStorage } from "./slow-storage.ts";

const MOST_PROFILE = 48 << 20;

/** Whether these ranks of the group, which are on this machine, can be asked for tests. */
export function canTest(
  { group }: PrepareTestsRequest,
  ranks: readonly number[],
  rings: readonly FoundRing[],
): AgentReply {
  const able = new Set(pythonOf(rings).map((ring) => ring.header.rank));
  const unable = ranks.filter((rank) => !able.has(rank));
  if (unable.length > 0) return refused(`${rankWords(unable)}: no process with the Python probe`);
  if (validationRequest({ ...LONGEST_TESTS, ranks: rankRuns(group) }) === null)
    return refused(noRoom(group));
  return { kind: "evidence", files: [], troubles: [] };
}

/** No numbers of tests take more room in a ring's header. */
const LONGEST_TESTS = {
  atIteration: 999_999_999_999,
  rounds: 99,
  gemm: false,
  ring: false,
  tree: false,
  stride: 9999,
  repeats: 100,
  mb: 1024,
  limitS: 600.123,
};

function pythonOf(rings: readonly FoundRing[]): FoundRing[] {
  return rings.filter((ring) => ring.header.writer === "python" && isAlive(ring));
}

function noRoom(group: readonly number[]): string {
  return `${count(group.length, "rank")} without a pattern do not fit into a request`;
}

/** `rings`: those of the run on this machine, of the ranks that take part. */
export async function requestTests(
  request: ValidateRequest | ProfileRequest,
  rings: readonly FoundRing[],
  storage: SlowStorage,
): Promise<AgentReply> {
  const python = pythonOf(rings);
  if (python.length === 0)
    return refused("no process with the Python probe here: nobody can be asked");
  if (request.ask === "profile")
    return requested(
      python,
      profileRequest(request.steps),
      /\.kineto\.json(\.gz)?$/,
      request,
      storage,
    );
  const { atIteration, rounds, gemm, ring, tree, stride, repeats, mb, limitMs, group } = request;
  const several = { ...(rounds > 1 ? { rounds } : {}), ...(stride > 1 ? { stride } : {}) };
  const tests = { atIteration, ...several, gemm, ring, tree, repeats, mb, limitS: limitMs / 1000 };
  const asked = validationRequest({ ...tests, ranks: rankRuns(group) });
  if (asked === null) return refused(noRoom(group));
  return requested(python, asked, /\.validation\.json$/, request, storage);
}

/** How often reports are looked at that are not there yet. */
const LOOK_MS = 200;

/** Reports of the tests so far; no files where not all ranks have done so many rounds in time. */
export async function readTests(
  { atIteration, rounds, waitMs }: Pick<ReadTestsRequest, "atIteration" | "rounds" | "waitMs">,
  rings: readonly FoundRing[],
  storage: SlowStorage,
): Promise<AgentReply> {
  const end = performance.now() + waitMs;
  const paths = pythonOf(rings).map(({ path }) => `${path}.validation.json`);
  for (;;) {
    const files: { name: string; bytes: Buffer }[] = [];
    for (const path of paths) {
      try {
        const bytes = await readSmall(path, storage, MOST_REPORT, true);
        if (hasRounds(bytes, atIteration, rounds)) files.push({ name: basename(path), bytes });
      } catch {
        // Its first round is not over.
      }
    }
    const isWhole = files.length === paths.length;
    if (isWhole || performance.now() >= end)
      return { kind: "evidence", files: isWhole ? files : [], troubles: [] };
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

const MOST_REPORT = 8 << 20;

function hasRounds(bytes: Buffer, atIteration: number, rounds: number): boolean {
  const report = JSON.parse(bytes.toString()) as { iteration?: unknown; rounds?: unknown };
  return report.iteration === atIteration && Number(report.rounds) >= rounds;
}

async function requested(
  rings: readonly FoundRing[],
  request: Request,
  ending: RegExp,
  { waitMs }: { readonly waitMs: number },
  storage: SlowStorage,
): Promise<AgentReply> {
  const before = sidecarsOf(rings);
  const { asked, troubles: unwritten } = ask(rings, request);
  const silent = await answers(asked, request, waitMs);
  const troubles = [
    ...unwritten.map(({ ring, why }) => `${nameOf(ring)}: ${why}`),
    ...silent.map(({ ring }) => `${nameOf(ring)} did not answer within ${waitMs / 1000} s`),
  ];
  const files: { name: string; bytes: Buffer }[] = [];
  for (const path of changedSince(before, rings, ending)) {
    try {
      // Half a trace cannot be read.
      const bytes = await readSmall(path, storage, MOST_PROFILE, true);
      files.push({ name: basename(path), bytes });
    } catch (error) {
      troubles.push(`${basename(path)}: ${openingError(error)}`);
    }
  }
  return { kind: "evidence", files, troubles };
}

/** "0-248/8,5": runs of equal steps, for the header of a ring has little room (probe/RING.md). */
function rankRuns(ranks: readonly number[]): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const runs: string[] = [];
  for (let i = 0; i < sorted.length;) {
    const step = (sorted[i + 1] ?? NaN) - sorted[i]!;
    let end = i;
    while ((sorted[end + 1] ?? NaN) - (sorted[end] ?? NaN) === step) end++;
    if (end - i >= 2) {
      runs.push(`${sorted[i]}-${sorted[end]}/${step}`);
      i = end + 1;
    } else runs.push(String(sorted[i++]));
  }
  return runs.join();
}
