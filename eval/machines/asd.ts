/**
 * ASD (application servers, InterFusion's data): 12 servers that do the same work, 19 metrics every five minutes for
 * 15 days, anomalies marked by people sample by sample. They are no synchronous job: each has its own troubles.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { MetricSamples, MetricSet } from "../../src/model/metrics.ts";

export const SAMPLE_S = 300;
const SERVERS = 12;

export interface Server {
  readonly name: string;
  /** By metric: its samples. */
  readonly train: readonly Float64Array[];
  readonly test: readonly Float64Array[];
  /** By sample of the test part: 1 where people saw an anomaly. */
  readonly label: Uint8Array;
}

/** Samples of a server, the last one not included. */
export interface Span {
  readonly server: number;
  readonly from: number;
  readonly to: number;
}

export function readServers(folder: string): Server[] {
  return Array.from({ length: SERVERS }, (_, i) => {
    const read = (what: string): number[][] =>
      gunzipSync(readFileSync(join(folder, `omi-${i + 1}_${what}.csv.gz`)))
        .toString()
        .trim()
        .split("\n")
        .map((line) => line.split(",").map(Number));
    return {
      name: `omi-${String(i + 1).padStart(2, "0")}`,
      train: columnsOf(read("train")),
      test: columnsOf(read("test")),
      label: Uint8Array.from(read("label"), ([one]) => one!),
    };
  });
}

function columnsOf(rows: readonly (readonly number[])[]): Float64Array[] {
  return rows[0]!.map((_, column) => Float64Array.from(rows, (row) => row[column]!));
}

/** Samples `from` to `to` of all servers, as monitoring would have given them. */
export function metricSet(servers: readonly Server[], from: number, to: number): MetricSet {
  const length = to - from;
  const samples = servers[0]!.test.map((_, metric): MetricSamples => {
    const value = new Float64Array(servers.length * length);
    servers.forEach(({ test }, s) => value.set(test[metric]!.subarray(from, to), s * length));
    return {
      name: `m${metric}`,
      type: "gauge",
      machine: Int32Array.from(servers.keys()),
      device: servers.map(() => ""),
      start: Uint32Array.from({ length: servers.length + 1 }, (_, s) => s * length),
      timeS: Float64Array.from(value, (_, i) => (from + (i % length)) * SAMPLE_S),
      value,
    };
  });
  return {
    machines: servers.map(({ name }) => name),
    hardware: servers.map(() => null),
    samples,
  };
}

/** Stretches of ones. */
export function spansOf(marks: Uint8Array, server: number): Span[] {
  const spans: Span[] = [];
  let from = -1;
  for (let i = 0; i <= marks.length; i++) {
    if (marks[i] === 1 && from < 0) from = i;
    if (marks[i] !== 1 && from >= 0) {
      spans.push({ server, from, to: i });
      from = -1;
    }
  }
  return spans;
}
