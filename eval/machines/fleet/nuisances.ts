/**
 * What real tasks have beside faults. Each is a knob; all off gives clean levels. "Assumed" says that no public data
 * tells: whoever has some should replace the figure.
 */
import { noiseLevels, type NoiseLevels } from "../../../src/simulate/emit/metrics/spread.ts";

export interface Nuisances {
  /** Offsets of machines and devices, slow and fast noise, common drift, bursts (spread.ts). */
  readonly noise: NoiseLevels;
  /** Wobble of the iteration's length, all machines alike; 1.2 % is the median of real Megatron logs (noise.ts). */
  readonly wobble: number;
  /** Levels swing with the iteration: compute, then gradients over the network. 0: as if sampled over whole ones. */
  readonly swing: number;
  /** Short real fluctuations (Minder's challenge 4), per machine and 15 minutes; assumed, "several" at 1,000 machines. */
  readonly jitters: number;
  /** Seconds from one checkpoint to the next, how long the job pauses, and how long its writers are busy; null: none. */
  readonly checkpoints: {
    readonly everyS: number;
    readonly pauseS: number;
    readonly writeS: number;
    /** Who writes: one machine, or the first of each stage. */
    readonly writers: "one" | "stages";
  } | null;
  /** An evaluation phase: forward passes only. */
  readonly evaluation: { readonly fromS: number; readonly untilS: number } | null;
  /** Machines start within this time and load data; 0: the job ran before. Assumed up to 90 s. */
  readonly warmupS: number;
  /** No job between these times: it ended, or was restarted. */
  readonly idle: { readonly fromS: number; readonly untilS: number } | null;
  /** Share of the scrapes that are lost, and short gaps of a machine per 15 minutes; assumed. */
  readonly lostShare: number;
  readonly gaps: number;
  /** How often dcgm-exporter looks; values repeat where scrapes are more frequent. 0: at every scrape. */
  readonly dcgmEveryS: number;
  /** Expected broken exporters of each kind in the task, and per machine in addition; assumed. */
  readonly telemetry: number;
  readonly telemetryPerMachine: number;
  /** Share of the machines on which an Xid of before the task is still shown: DCGM gives the last one for ever. */
  readonly oldXids: number;
}

export const USUAL: Nuisances = {
  noise: noiseLevels(1),
  wobble: 0.012,
  swing: 1,
  jitters: 0.008,
  checkpoints: { everyS: 600, pauseS: 30, writeS: 60, writers: "stages" },
  evaluation: null,
  warmupS: 0,
  idle: null,
  lostShare: 0.0005,
  gaps: 0.01,
  dcgmEveryS: 0,
  telemetry: 0.04,
  telemetryPerMachine: 0.0003,
  oldXids: 0.003,
};

export const NO_NUISANCES: Nuisances = {
  noise: noiseLevels(0),
  wobble: 0,
  swing: 0,
  jitters: 0,
  checkpoints: null,
  evaluation: null,
  warmupS: 0,
  idle: null,
  lostShare: 0,
  gaps: 0,
  dcgmEveryS: 0,
  telemetry: 0,
  telemetryPerMachine: 0,
  oldXids: 0,
};
