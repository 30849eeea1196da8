/** What all tables share: trained forests, runs with what they are searched by, counts in cells. */
import type { DeviceScore } from "./attribution/accumulate.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { forestRule, sigmaRule } from "./published-detector.ts";
import { trainFor } from "./published-training.ts";
import { searches, type Locate } from "./published.ts";
import {
  isDevice,
  isOursRight,
  runCases,
  training,
  type RunCase,
  type Shape,
  type TableCase,
} from "./table-cases.ts";
import { wilson } from "../../src/maths/wilson.ts";

export interface TableOptions {
  readonly gpus: number;
  readonly cases: number;
  /** Over how many trainings (layouts, with a forest each) the cases are spread. */
  readonly trainings: number;
}

export interface Trial extends RunCase {
  /** With the training's forest, and with the 3-sigma rule. */
  readonly byForest: Locate;
  readonly bySigma: Locate;
  /** Whether the present method names the device, alone; asked once. */
  readonly isOursRight: boolean;
}

const trained = new Map<string, ReturnType<typeof trainFor>>();

export function forestOf(layout: ClusterSpec): ReturnType<typeof trainFor> {
  const { gpus, tp, pp, cp, ep, seed } = layout;
  const key = [gpus, tp, pp, cp, ep, seed].join();
  let detector = trained.get(key);
  if (!detector) trained.set(key, (detector = trainFor(layout)));
  return detector;
}

export function layoutsOf({ gpus, trainings }: TableOptions): ClusterSpec[] {
  return Array.from({ length: trainings }, (_, number) => training(gpus, number));
}

export function* trials(
  layouts: readonly ClusterSpec[],
  cases: number,
  shapes: readonly Shape[] = ["steady"],
): Generator<Trial> {
  const count = Math.ceil(cases / layouts.length);
  for (const [number, layout] of layouts.entries()) {
    const detector = forestOf(layout);
    const firstSeed = (layout.seed % 4_000_000) * 1_000;
    for (const run of runCases(layout, count, firstSeed, shapes, number * count)) {
      yield {
        ...run,
        byForest: searches(run.job, forestRule(run.job, detector, detector.leastShare)),
        bySigma: searches(run.job, sigmaRule(run.job)),
        isOursRight: isOursRight(run),
      };
    }
  }
}

/** Right at the first place, and among the first two. */
export class Hits {
  #first = 0;
  #two = 0;
  #all = 0;

  add(one: TableCase, devices: readonly DeviceScore[]): void {
    const at = devices.slice(0, 2).findIndex(({ device }) => isDevice(one, device));
    this.#first += Number(at === 0);
    this.#two += Number(at >= 0);
    this.#all++;
  }

  get cells(): [string, string] {
    return [share(this.#first, this.#all), share(this.#two, this.#all)];
  }
}

export class Shares {
  #right = 0;
  #all = 0;

  add(right: boolean): void {
    this.#right += Number(right);
    this.#all++;
  }

  get cell(): string {
    return share(this.#right, this.#all);
  }
}

/** "45/60 = 75 % (63–84)". */
function share(right: number, all: number): string {
  if (all === 0) return "–";
  const [low, high] = wilson(right, all).map((value) => Math.round(100 * value)) as [
    number,
    number,
  ];
  return `${right}/${all} = ${((100 * right) / all).toFixed(0)} % (${low}–${high})`;
}

export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}
