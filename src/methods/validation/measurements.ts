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
}

export interface Link {
  readonly from: Rank;
  readonly to: Rank;
}

/** Samples that can be compared with each other. */
export interface Comparable<Who> {
  /** For people: "bfloat16 4096×4096×4096", "16 MB between machines". */
  readonly what: string;
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
      sample: sampleOf(rank, ms),
    })),
  );
  return [...groupBy(all, ({ key }) => key).values()].map((list) => ({
    what: list[0]!.what,
    samples: list.map(({ sample }) => sample),
  }));
}

/**
 * Transfers of one size in one topology: passes differ in nothing but which ranks take part, so that they are compared
 * with each other. Inside a machine data takes another way than between two.
 */
export function transfers(reports: readonly ValidationReport[]): Comparable<Link>[] {
  const hostOf = new Map(reports.map(({ rank, host }) => [rank, host]));
  const all = reports.flatMap((report) =>
    report.transfers.map(({ topology, from, to, bytes, ms }) => {
      const isInside = hostOf.has(from) && hostOf.get(from) === hostOf.get(to);
      const where = isInside ? "inside a machine" : "between machines";
      return {
        key: `${topology} ${bytes} ${where}`,
        what: `${megabytes(bytes)} ${where} (${topology})`,
        sample: sampleOf({ from, to }, ms),
      };
    }),
  );
  return [...groupBy(all, ({ key }) => key).values()].map((list) => ({
    what: list[0]!.what,
    samples: list.map(({ sample }) => sample),
  }));
}

function sampleOf<Who>(who: Who, ms: readonly number[]): Sample<Who> {
  return { who, ms: median(ms), leastMs: Math.min(...ms) };
}

function megabytes(bytes: number): string {
  return bytes >= 1 << 20
    ? `${Math.round(bytes / (1 << 20))} MiB`
    : `${Math.round(bytes / 1024)} KiB`;
}
