/** `faultline agent stacks`, `profile` and `validate`: what is asked of running processes. */
import { closeSync } from "node:fs";
import { printJson } from "./output.ts";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import {
  answers,
  ask,
  profileRequest,
  validationRequest,
  type Request,
} from "../live/agent/rings/control.ts";
import type { FoundRing } from "../live/agent/rings/discover.ts";
import { nameOf, requestStacks } from "../live/agent/evidence/request-stacks.ts";
import { lastIteration } from "../live/agent/iterations/last-iteration.ts";
import { thisMachine } from "../live/agent/process-state.ts";
import { openRing } from "../live/agent/rings/ring-file.ts";
import { changedSince, sidecarsOf } from "../live/agent/evidence/sidecars.ts";
import { living, ringsOfWriter, type ChosenFlags } from "./agent-chosen.ts";
import type { Io } from "./io.ts";

export interface StacksFlags extends ChosenFlags {
  readonly wait?: number;
}
export interface ProfileFlags extends ChosenFlags {
  readonly steps: number;
  readonly wait?: number;
}
export interface ValidateFlags extends ChosenFlags {
  readonly atIteration?: number;
  readonly in?: number;
  readonly gemm?: boolean;
  readonly ring?: boolean;
  readonly tree?: boolean;
  readonly repeats?: number;
  readonly mb?: number;
  readonly wait?: number;
}

const STACKS_S = 2;
const LONG_S = 600;
/** Iterations between the request and the test, so that every rank has seen the request when it is due. */
const MARGIN = 3;

export async function runStacks(io: Io, flags: StacksFlags): Promise<number> {
  const rings = living(io, flags, thisMachine());
  const before = sidecarsOf(rings);
  const lines = await requestStacks(rings, (flags.wait ?? STACKS_S) * 1000);
  return listFiles(io, flags, changedSince(before, rings, /\.stacks$/), lines);
}

export async function runProfile(io: Io, flags: ProfileFlags): Promise<number> {
  const rings = ringsOfWriter(living(io, flags, thisMachine()), "python");
  const before = sidecarsOf(rings);
  const lines = await request(rings, profileRequest(flags.steps), "profile", flags.wait ?? LONG_S);
  return listFiles(io, flags, changedSince(before, rings, /\.kineto\.json(\.gz)?$/), lines);
}

export async function runValidate(io: Io, flags: ValidateFlags): Promise<number> {
  if (flags.atIteration !== undefined && flags.in !== undefined)
    throw new UserError("--at-iteration and --in cannot be used together", "give one of them", 2);
  const rings = ringsOfWriter(living(io, flags, thisMachine()), "python");
  const atIteration = flags.atIteration ?? lastOf(rings) + (flags.in ?? MARGIN);
  const all = !flags.gemm && !flags.ring && !flags.tree;
  const validation = {
    atIteration,
    gemm: all || flags.gemm === true,
    ring: all || flags.ring === true,
    tree: all || flags.tree === true,
    repeats: flags.repeats ?? 3,
    mb: flags.mb ?? 16,
  };
  if (!flags.quiet) io.err.write(`${where(rings, atIteration, flags)}\n`);
  const before = sidecarsOf(rings);
  const wait = flags.wait ?? LONG_S;
  const lines = await request(rings, validationRequest(validation)!, "test itself", wait);
  return listFiles(io, flags, changedSince(before, rings, /\.validation\.json$/), lines);
}

/** All ranks must be asked for the same iteration; those on other machines, there. */
function where(rings: readonly FoundRing[], at: number, { atIteration }: ValidateFlags): string {
  const here = new Set(rings.map(({ header }) => header.rank)).size;
  const all = Math.max(...rings.map(({ header }) => header.worldSize));
  const elsewhere =
    all > here && atIteration === undefined
      ? `; this machine has ${here} of ${count(all, "rank")}: start the test on the others right away with --at-iteration ${at}`
      : "";
  return `tests after iteration ${at}${elsewhere}`;
}

/** The last iteration that any rank on this machine has begun: all must still be before the one that is asked for. */
function lastOf(rings: readonly FoundRing[]): number {
  const last = Math.max(
    -1,
    ...rings.map((ring) => {
      const fd = openRing(ring);
      try {
        return lastIteration(fd, ring);
      } finally {
        closeSync(fd);
      }
    }),
  );
  if (last < 0)
    throw new UserError(
      "the rings show no iteration yet, so none can be chosen",
      "give --at-iteration N, or have the probe mark iterations (docs/guides/agent.md)",
    );
  return last;
}

/** Asks, and waits; a line for each that did not answer. */
async function request(
  rings: readonly FoundRing[],
  what: Request,
  verb: string,
  waitS: number,
): Promise<string[]> {
  const { asked, troubles } = ask(rings, what);
  const silent = await answers(asked, what, waitS * 1000);
  return [
    ...troubles.map(({ ring, why }) => `${nameOf(ring)}: ${why}`),
    ...silent.map(({ ring }) => `${nameOf(ring)} did not ${verb} within ${waitS} s`),
  ];
}

function listFiles(
  io: Io,
  flags: ChosenFlags,
  files: readonly string[],
  lines: readonly string[],
): number {
  if (flags.json) printJson(io, { schema: "faultline.answers/1", files, troubles: lines });
  else io.out.write(files.map((file) => `${harmless(file)}\n`).join(""));
  const all = files.length === 0 ? [...lines, "nothing was written"] : lines;
  if (!flags.quiet) for (const line of all) io.err.write(`${harmless(line)}\n`);
  return files.length > 0 ? 0 : 1;
}
