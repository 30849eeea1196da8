/**
 * Summaries as the agents of a training job send them, seeded: noise of a few per cent that wanders, collections now and
 * then, a loader with a tail, checkpoints, and regressions of the code from a moment on.
 */
import { seeded } from "../../../src/base/random.ts";
import type { GrownPart } from "../../../src/model/regression.ts";
import {
  histogramOf,
  WORK_PARTS,
  type WorkPart,
  type WorkSummary,
} from "../../../src/model/work-summary.ts";

export interface SimulatedRegression {
  readonly part: GrownPart;
  /** By how much of itself an iteration becomes longer. */
  readonly cost: number;
  readonly fromMs: number;
  readonly toMs?: number;
  /** Machines that have it; all of them by default. */
  readonly machines?: number;
}

export interface SimulatedWork {
  readonly seed: number;
  readonly machines?: number;
  readonly ranks?: number;
  readonly stepMs?: number;
  readonly regression?: SimulatedRegression;
  /** From then on sequences are so many times as long: products and activations have other shapes, gradients have not. */
  readonly sequences?: { readonly times: number; readonly fromMs: number };
  /** Whether the shim traces products; it does by default. */
  readonly hasShapes?: boolean;
}

export const INTERVAL_MS = 15_000;

/** The summaries of one interval, by machine. */
export function simulatedWork(given: SimulatedWork): (fromMs: number) => Map<string, WorkSummary> {
  const { seed, machines = 4, ranks = 4, regression, sequences, hasShapes = true } = given;
  const random = seeded(seed);
  const healthyStepMs = given.stepMs ?? 600 + 3000 * random();
  const share = {
    products: 0.3 + 0.2 * random(),
    synchronization: 0.2 + 0.3 * random(),
    transfers: 0.2,
  };
  const transfers = { "all_reduce-33554432-BFloat16": 9, "all_gather-4194304-BFloat16": 1.3 };
  const shapes = { "4096x4096x1024x1": 0.4, "4096x16384x1024x1": 1.6, "4096x1024x16384x1": 1.7 };
  const noise = 0.004 + 0.012 * random();
  const gauss = (): number => random() + random() + random() + random() - 2;
  let wander = 0;
  let interval = 0;
  return (fromMs) => {
    interval++;
    wander = 0.97 * wander + 0.003 * gauss();
    const times = sequences && fromMs >= sequences.fromMs ? sequences.times : 1;
    const stepMs = times * healthyStepMs;
    const tokens = Math.round(4096 * times);
    const isCheckpoint = interval % 40 === 0;
    const iterations = Math.max(1, Math.floor(INTERVAL_MS / stepMs) - (isCheckpoint ? 3 : 0));
    const { fromMs: since = Infinity, toMs = Infinity } = regression ?? {};
    const isOn = fromMs >= since && fromMs < toMs;
    const found = new Map<string, WorkSummary>();
    const lengths = Array.from({ length: iterations }, (_, k) => {
      const pause = isCheckpoint && k === 0 ? 3 * stepMs : 0;
      const isHit = isOn && regression!.machines !== 0;
      return (
        stepMs * (1 + wander + noise * gauss()) + pause + (isHit ? regression!.cost * stepMs : 0)
      );
    });
    for (let m = 0; m < machines; m++) {
      const hasIt = isOn && m < (regression!.machines ?? machines);
      const values = Object.fromEntries(WORK_PARTS.map((part) => [part, [] as number[]])) as Record<
        WorkPart,
        number[]
      >;
      for (let r = 0; r < ranks; r++)
        for (const length of lengths) {
          const extra = (part: GrownPart): number =>
            hasIt && regression!.part === part
              ? regression!.cost * stepMs * (1 + 0.05 * gauss())
              : 0;
          values.step.push(length * (1 + 0.002 * gauss()));
          // The first stage's machines load.
          if (m < machines / 2)
            values.dataloader.push(
              0.004 * stepMs * (1 + (random() < 0.05 ? 4 * random() : 0)) + extra("dataloader"),
            );
          values["garbage-collection"].push(
            (random() < 0.01 ? 0.03 * stepMs : 0) + extra("garbage-collection"),
          );
          // Whoever waits for the GPU waits for all that is slower.
          const wait = share.synchronization * length * (1 + 0.05 * gauss());
          values.synchronization.push(wait + extra("synchronization"));
          values.own.push(
            0.7 * stepMs * (1 + 0.01 * gauss()) +
              (hasIt && regression!.part !== "transfers" ? regression!.cost * stepMs : 0),
          );
          values["issue-latency"].push(0.05 * stepMs * (1 + 0.1 * gauss()));
        }
      const isSync = hasIt && regression!.part === "synchronization";
      found.set(`m${m}`, {
        interval,
        parts: Object.fromEntries(
          WORK_PARTS.filter((part) => values[part].length > 0).map((part) => [
            part,
            histogramOf(values[part]),
          ]),
        ),
        synchronizations: isSync ? 33 : 1,
        shapes: Object.entries(hasShapes ? shapes : {}).map(([shape, ms]) => {
          // The share of the step that products take decides how much slower they are.
          const slower =
            hasIt && regression!.part === "products" ? 1 + regression!.cost / share.products : 1;
          const all = Array.from({ length: 20 }, () => times * ms * slower * (1 + 0.02 * gauss()));
          return { shape: shape.replace(/^4096/, String(tokens)), ms: histogramOf(all) };
        }),
        transfers: Object.entries(transfers).map(([shape, ms]) => {
          const slower =
            hasIt && regression!.part === "transfers" ? 1 + regression!.cost / share.transfers : 1;
          // Whoever comes early waits for the others, and for all that is slower.
          const waits = (): number => 0.3 * ms * random() * (isOn ? 1 + regression!.cost : 1);
          const times = Array.from(
            { length: 20 },
            () => ms * slower * (1 + 0.02 * gauss()) + waits(),
          );
          return { shape, ms: histogramOf(times) };
        }),
        programs: [`${m < machines / 2 ? "first" : "last"}-${ranks * machines}`],
      });
    }
    return found;
  };
}
