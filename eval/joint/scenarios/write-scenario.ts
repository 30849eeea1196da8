/** Writes what a scenario's job would have left, in the formats that real jobs leave; only the kinds asked for. */
import { simulate } from "../../../src/simulate/cluster/engine.ts";
import type { IterationTimes, Simulation } from "../../../src/simulate/cluster/times.ts";
import { emitFlightRecorder } from "../../../src/simulate/emit/flight-recorder.ts";
import { emitLogs } from "../../../src/simulate/emit/logs.ts";
import { emitMetrics } from "../../../src/simulate/emit/metrics.ts";
import type { Emitter, Output, Writer } from "../../../src/simulate/emit/emitter.ts";
import { writeTruth } from "../../../src/simulate/emit/truth.ts";
import { alsoPrinted } from "./joint-logs.ts";
import { metricOptions } from "./joint-metrics.ts";
import { writeKernelLogs } from "./kernel-lines.ts";
import { alteredLog, alteredRecords, mismatchForm } from "./mismatch.ts";
import { momentOf, type Moment } from "./moment.ts";
import { EVIDENCE_KINDS, type EvidenceKind, type Scenario } from "./scenario.ts";
import { writeStacks } from "./stacks.ts";

/** Folders of each kind, for whoever reads only some of them; "job.json" goes with all. */
export const FOLDERS: Readonly<Record<EvidenceKind, string>> = {
  operators: "flight-recorder",
  metrics: "metrics",
  logs: "logs",
  stacks: "stacks",
};

export function writeScenario(
  scenario: Scenario,
  output: Output,
  kinds: readonly EvidenceKind[] = EVIDENCE_KINDS,
): void {
  const simulation = simulate(scenario.spec);
  const writing = new Writing(scenario, simulation, output);
  const emitters = kinds.flatMap((kind) => writing.emitter(kind) ?? []);
  for (const times of simulation.iterations()) {
    for (const emitter of emitters) emitter.iteration(times);
    writing.see(times);
  }
  for (const emitter of emitters) emitter.end();
  writing.finish(kinds);
}

class Writing {
  readonly #scenario: Scenario;
  readonly #simulation: Simulation;
  readonly #output: Output;
  readonly #kernel = new Map<string, string>();
  #moment: Moment | null = null;

  constructor(scenario: Scenario, simulation: Simulation, output: Output) {
    this.#scenario = scenario;
    this.#simulation = simulation;
    this.#output = output;
  }

  see(times: IterationTimes): void {
    const { spec } = this.#scenario;
    if (times.endNs === Infinity || times.iteration === spec.iterations)
      this.#moment = momentOf(this.#simulation, times);
  }

  emitter(kind: EvidenceKind): Emitter | null {
    const { ringSize, timing } = this.#scenario;
    switch (kind) {
      case "operators":
        return emitFlightRecorder(this.#simulation, this.#dumps(), {
          ringSize,
          timing,
          alter: (records) => {
            const wrong = this.#mismatch();
            return wrong?.rank === records.rank ? alteredRecords(records, wrong.form) : records;
          },
        });
      case "metrics":
        return emitMetrics(
          this.#simulation,
          this.#output,
          metricOptions(this.#scenario, this.#simulation, () => this.#moment!),
        );
      case "logs":
        return emitLogs(this.#simulation, this.#logs(), {
          everyRank: true,
          also: alsoPrinted(this.#scenario),
        });
      case "stacks":
        return null;
    }
  }

  finish(kinds: readonly EvidenceKind[]): void {
    const { spec, truths, family, misleading, growth } = this.#scenario;
    if (kinds.includes("logs"))
      writeKernelLogs(this.#scenario, this.#simulation, this.#moment!, this.#kernel, this.#output);
    if (kinds.includes("stacks")) writeStacks(this.#scenario, this.#simulation, this.#output);
    writeTruth(this.#simulation, {
      open: (path) => (path === "truth.json" ? NOWHERE : this.#output.open(path)),
    });
    const file = this.#output.open("truth.json");
    const kind = truths[0]?.kind ?? "healthy";
    const about = { kind, family, misleading, growth, seed: spec.seed, faults: truths };
    file.write(`${JSON.stringify(about, null, 1)}\n`);
    file.end();
  }

  #dumps(): Output {
    const { lost } = this.#scenario;
    const gone = new Set(lost?.kind === "operators" ? lost.ranks : []);
    return {
      open: (path) => (gone.has(rankOf(path)) ? NOWHERE : this.#output.open(path)),
    };
  }

  /** Most files pass through; those of which something is to be changed are kept until they are whole. */
  #logs(): Output {
    const { lost, isFinished, truths, family } = this.#scenario;
    const gone = new Set(lost?.kind === "logs" ? lost.ranks : []);
    return {
      open: (path) => {
        const machine = /dmesg\.(.+)\.log$/.exec(path)?.[1];
        if (machine !== undefined) return whole((text) => this.#kernel.set(machine, text));
        const rank = rankOf(path);
        if (gone.has(rank)) return NOWHERE;
        const isWrong = family === "mismatch" && rank === truths[0]!.ranks[0];
        if (isWrong || (rank === 0 && !isFinished))
          return whole((text) => {
            const wrong = isWrong ? this.#mismatch() : null;
            const own = wrong ? alteredLog(text, wrong.program, wrong.op, wrong.form) : text;
            this.#put(path, isFinished ? own : own.replace(FINISHED, ""));
          });
        return this.#output.open(path);
      },
    };
  }

  #put(path: string, text: string): void {
    const file = this.#output.open(path);
    file.write(text);
    file.end();
  }

  #mismatch() {
    const { family, truths, spec } = this.#scenario;
    if (family !== "mismatch" || this.#moment === null) return null;
    const rank = truths[0]!.ranks[0]!;
    const program = this.#simulation.programs[Math.floor(rank / this.#simulation.lanes.lanes)]!;
    const op = this.#moment.gpuEndsAt(rank);
    return { rank, program, op, form: mismatchForm(spec.seed, program, op) };
  }
}

const FINISHED = /^\[after training is done\].*\n/m;
const NOWHERE: Writer = { write: () => undefined, end: () => undefined };

function rankOf(path: string): number {
  return Number(/rank_?(\d+)/.exec(path)?.[1] ?? -1);
}

function whole(take: (text: string) => void): Writer {
  let text = "";
  return {
    write: (chunk) =>
      void (text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8")),
    end: () => take(text),
  };
}
