/** What a Prometheus has of the metrics that machines are compared by. */
import { errorText } from "../../base/errors.ts";
import { availableNames, connect, nowS } from "../../ingest/prometheus/prometheus.ts";
import { CATALOG, type CatalogMetric } from "../../model/metric-catalog.ts";
import type { MetricsServerSeen } from "./metrics-server.ts";

export interface MetricsServer {
  readonly url: string;
  readonly match: string;
  readonly headers: Readonly<Record<string, string>>;
}

const RANGE_S = 900;

export async function lookAtMetricsServer(
  { url, match, headers }: MetricsServer,
  timeoutMs: number,
): Promise<{ readonly seen: MetricsServerSeen; readonly clockOffsetMs: number | null }> {
  const nothing = { url, match, failure: null, has: null, lacks: [], hasGpus: false };
  try {
    const { signal } = new AbortController();
    const server = await connect({ url, headers, signal, timeoutMs });
    const { clockOffsetMs } = server;
    const now = nowS(server);
    const names = await availableNames(server, match, now - RANGE_S, now);
    if (names === null) return { seen: nothing, clockOffsetMs };
    const isThere = ({ sources }: CatalogMetric): boolean =>
      sources.some((source) => source.names.every((name) => names.has(name)));
    const known = new Set(CATALOG.flatMap(({ sources }) => sources.flatMap((one) => one.names)));
    const seen = {
      ...nothing,
      has: [...known].filter((name) => names.has(name)),
      lacks: CATALOG.filter((one) => one.isMinder && !isThere(one)).map(({ id }) => id),
      hasGpus: CATALOG.some((one) => one.group === "gpu" && isThere(one)),
    };
    return { seen, clockOffsetMs };
  } catch (error) {
    return { seen: { ...nothing, failure: errorText(error) }, clockOffsetMs: null };
  }
}
