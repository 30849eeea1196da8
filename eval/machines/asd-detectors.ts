/** Ways to find a server's anomalies: against its peers, as Minder does, and against its own past. */
import { alignFleet } from "../../src/methods/machines/align.ts";
import { findMachines } from "../../src/methods/machines/find-machines.ts";
import { runMinder } from "../../src/methods/machines/minder/minder.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import { median, TO_DEVIATION } from "../../src/maths/robust.ts";
import { metricSet, SAMPLE_S, spansOf, type Server, type Span } from "./asd.ts";

/** Three samples: the shortest marked anomalies have four. */
const CONTINUITY_S = 3 * SAMPLE_S;
/** The values have two digits: less than that says nothing. */
const RESOLUTION = 0.01;

interface Times {
  readonly machine: string;
  readonly fromS: number;
  readonly toS: number | null;
}

/** One call for each window of so many samples, and what they said taken together. */
function called(
  servers: readonly Server[],
  window: number,
  ask: (window: ReturnType<typeof metricSet>) => readonly Times[],
): Span[] {
  const length = servers[0]!.label.length;
  const marks = servers.map(() => new Uint8Array(length));
  const number = new Map(servers.map(({ name }, s) => [name, s]));
  // Half a window onwards, so that nothing is seen only at an edge.
  const hop = window >= length ? length : window >> 1;
  for (let from = 0; from + window <= length; from += hop) {
    for (const { machine, fromS, toS } of ask(metricSet(servers, from, from + window))) {
      const first = Math.max(from, Math.round(fromS / SAMPLE_S));
      const end = toS === null ? from + window : Math.round(toS / SAMPLE_S);
      marks[number.get(machine)!]!.fill(1, first, Math.min(end, from + window));
    }
  }
  return marks.flatMap((one, s) => spansOf(one, s));
}

export function peers(servers: readonly Server[], window: number, withJitters: boolean): Span[] {
  return called(servers, window, (set) => {
    const report = findMachines(alignFleet([set]), { continuityS: CONTINUITY_S });
    const faulty = report.faulty.flatMap(({ machine, deviations }) =>
      deviations.map(({ fromS, toS }) => ({ machine, fromS, toS })),
    );
    return withJitters ? [...faulty, ...report.jitter] : faulty;
  });
}

export function minder(servers: readonly Server[], window: number, threshold: number): Span[] {
  return called(servers, window, (set) => {
    const fleet = alignFleet([set]);
    const { faulty } = runMinder(fleet, shippedModels(), {
      metrics: fleet.grids.map(({ metric }) => metric),
      similarityThreshold: threshold,
      continuityS: CONTINUITY_S,
    });
    return faulty.map(({ machine, sinceS, untilS }) => ({ machine, fromS: sinceS, toS: untilS }));
  });
}

/** Each metric against its own training part; alarms where the worst, or the mean, exceeds what training ever did. */
export function ownPast(
  servers: readonly Server[],
  over: "worst" | "mean",
  quantile: number,
): Span[] {
  return servers.flatMap(({ train, test }, s) => {
    const levels = train.map((values) => {
      const middle = median(values);
      const spread = TO_DEVIATION * median(values.map((value) => Math.abs(value - middle)));
      return { middle, spread: Math.max(spread, RESOLUTION) };
    });
    const scores = (columns: readonly Float64Array[]): Float64Array =>
      columns[0]!.map((_, i) => {
        const off = levels.map(
          ({ middle, spread }, c) => Math.abs(columns[c]![i]! - middle) / spread,
        );
        return over === "worst"
          ? Math.max(...off)
          : off.reduce((sum, one) => sum + one, 0) / off.length;
      });
    const usual = scores(train).sort();
    const limit = usual[Math.floor(quantile * (usual.length - 1))]!;
    return spansOf(
      Uint8Array.from(scores(test), (score) => (score > limit ? 1 : 0)),
      s,
    );
  });
}
