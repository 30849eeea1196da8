/** `faultline agent dump`: what this machine knows about a job, as files that `faultline diagnose` takes. */
import { rmSync } from "node:fs";
import { printJson } from "./output.ts";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { defaultFolder, discover, type Found } from "../live/agent/rings/discover.ts";
import { dump, type DumpReport } from "../live/agent/evidence/dump.ts";
import { thisMachine } from "../live/agent/process-state.ts";
import { ringsOf, selectRuns, type Selected, type Wanted } from "../live/agent/select-run.ts";
import { stateWords } from "./agent-rings.ts";
import type { Io } from "./io.ts";

export interface DumpFlags extends Wanted {
  readonly dir?: string;
  readonly out: string;
  /** False with --no-flight-recorder. */
  readonly flightRecorder?: string | boolean;
  readonly ras?: string | true;
  readonly stacks?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export async function runAgentDump(io: Io, flags: DumpFlags): Promise<number> {
  const machine = thisMachine();
  const folder = flags.dir ?? defaultFolder(io.env);
  const { found, selected, without } = choose(flags, folder, machine);
  const report = await dump({
    rings: ringsOf(selected.runs),
    out: flags.out,
    machine,
    ...(flags.flightRecorder === false ? {} : { flightRecorder: flags.flightRecorder ?? true }),
    ...(flags.ras === undefined ? {} : { ras: flags.ras }),
    ...(flags.stacks ? { stacks: true } : {}),
  });
  const troubles = [...found.troubles, ...selected.remarks, ...report.troubles];
  if (report.rings.length + report.files.length === 0) {
    rmSync(flags.out, { recursive: true, force: true });
    throw new UserError(
      `nothing could be dumped: ${without?.message ?? troubles[0] ?? "no process answered"}`,
      without?.hint ?? "see docs/guides/agent.md",
      3,
    );
  }
  if (flags.json) printJson(io, { schema: "faultline.dump/1", ...report, troubles });
  else io.out.write(`${harmless(summary(report))}\n`);
  if (!flags.quiet) for (const line of troubles) io.err.write(`${harmless(line)}\n`);
  return 0;
}

/** A job without our probe has no rings; its flight recorders and RAS may still answer. */
function choose(
  flags: DumpFlags,
  folder: string,
  machine: ReturnType<typeof thisMachine>,
): { found: Found; selected: Selected; without: UserError | null } {
  let found: Found = { runs: [], troubles: [] };
  try {
    found = discover(folder, machine);
    return { found, selected: selectRuns(found, folder, flags), without: null };
  } catch (error) {
    const isAbout = flags.job !== undefined || flags.pid !== undefined || flags.dir !== undefined;
    if (!(error instanceof UserError) || error.exitCode !== 3 || isAbout) throw error;
    return { found, selected: { runs: [], remarks: [error.message] }, without: error };
  }
}

export function summary({ out, rings, files, copiedMs }: DumpReport): string {
  const states = new Map<string, number>();
  for (const { state } of rings)
    states.set(stateWords(state), (states.get(stateWords(state)) ?? 0) + 1);
  const words = [...states].map(([state, many]) => `${many} ${state}`).join(", ");
  const recorded = files.filter((name) => name.startsWith("flight-recorder/")).length;
  const parts = [
    `${count(rings.length, "ring")}${words === "" ? "" : ` (${words})`}`,
    ...(recorded > 0 ? [count(recorded, "flight-recorder dump")] : []),
    ...(files.some((name) => name.startsWith("ras.")) ? ["the RAS report"] : []),
    ...(files.some((name) => name.endsWith(".stacks")) ? ["stacks"] : []),
  ];
  return `${out}: ${parts.join(", ")}; copied in ${Math.round(copiedMs)} ms; faultline diagnose ${out}`;
}
