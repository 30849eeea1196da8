/** What the ranks measured, put side by side: products of one size, and transfers between machines or inside them. */
import { groupBy } from "../../base/group-by.ts";
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { ValidationReport } from "../../model/validation.ts";

/** One rank's, or one link's, median of its repeats. */
export interface Sample<Who> {
  readonly who: Who;
  readonly ms: number;
  /** The fastest repeat: what is slow in truth is slow every time. */
  readonly leastMs: number;
  /** The machine of one end is unknown: measured by the others, and no measure for them. */
  readonly isGuest?: boolean;
}

export interface Link {
  readonly from: Rank;
  readonly to: Rank;
}

/** Samples that can be compared with each other. */
export interface Comparable<Who> {
  /** For people: "bfloat16 4096×4096×4096", "16 MB between machines". */
  readonly what: string;
  /** Of a product: "bfloat16". */
  readonly dtype?: string;
  /** Of transfers: inside a machine, and after which of several iterations. */
  readonly isInside?: boolean;
  readonly iteration?: number | undefined;
  readonly samples: readonly Sample<Who>[];
}

/** A rank may have been asked several times: the last answer counts. */
export function newestReports(reports: readonly ValidationReport[]): ValidationReport[] {
  const newest = new Map<Rank, ValidationReport>();
  for (const report of reports) {
    const known = newest.get(report.rank);
    if (!known || (report.timeMs ?? 0) >= (known.timeMs ?? 0)) newest.set(report.rank, report);
  }
  return [...newest.values()].sort((a, b) => a.rank - b.rank);
}

/** GPUs of one kind, at products of one size and type. */
export function products(reports: readonly ValidationReport[]): Comparable<Rank>[] {
  const all = reports.flatMap(({ rank, device, gemm }) =>
    gemm.map(({ dtype, m, n, k, ms }) => ({
      key: `${device} ${dtype} ${m}×${n}×${k}`,
      what: `${dtype} ${m}×${n}×${k}`,
      dtype,
      sample: sampleOf(rank, ms),
    })),
  );
  return [...groupBy(all, ({ key }) => key).values()].map((list) => ({
    what: list[0]!.what,
    dtype: list[0]!.dtype,
    samples: list.map(({ sample }) => sample),
  }));
}

/** Members of the group whose report is not here, ascending. */
export function missingRanks(reports: readonly ValidationReport[]): Rank[] {
  const here = new Set(reports.map(({ rank }) => rank));
  const members = new Set(reports.flatMap(({ group }) => group));
  return [...members].filter((rank) => !here.has(rank)).sort((a, b) => a - b);
}

/**
 * Transfers of one size in one topology: passes differ in nothing but which ranks take part, so that they are compared
 * with each other. Inside a machine data takes another way than between two. A rank that left no report is taken for
 * a machine of its own; where nobody else sends between machines, its transfers are compared with what there is.
 */
export function transfers(reports: readonly ValidationReport[]): Comparable<Link>[] {
  const hostOf = new Map(reports.map(({ rank, host }) => [rank, host]));
  const all = reports.flatMap((report) =>
    report.transfers.map(({ topology, from, to, bytes, ms, iteration }) => {
      const [a, b] = [hostOf.get(from), hostOf.get(to)];
      const isGuest = a === undefined || b === undefined;
      return {
        of: `${topology} ${bytes} ${iteration ?? ""}`,
        iteration,
        what: `${megabytes(bytes)} ${a === b ? "inside a machine" : "between machines"} (${topology})`,
        isInside: a === b,
        sample: { ...sampleOf({ from, to }, ms), isGuest },
      };
    }),
  );
  return [...groupBy(all, ({ of }) => of).values()].flatMap((list) => {
    const hasBetween = list.some(({ isInside, sample }) => !isInside && !sample.isGuest);
    const places = groupBy(list, ({ isInside, sample }) =>
      sample.isGuest ? !hasBetween : isInside,
    );
    return [...places].map(([isInside, same]) => ({
      what: (same.find(({ sample }) => !sample.isGuest) ?? same[0]!).what,
      isInside,
      iteration: same[0]!.iteration,
      samples: same.map(({ sample }) => sample),
    }));
  });
}

function sampleOf<Who>(who: Who, ms: readonly number[]): Sample<Who> {
  return { who, ms: median(ms), leastMs: Math.min(...ms) };
}

function megabytes(bytes: number): string {
  return bytes >= 1 << 20
    ? `${Math.round(bytes / (1 << 20))} MiB`
    : `${Math.round(bytes / 1024)} KiB`;
}
