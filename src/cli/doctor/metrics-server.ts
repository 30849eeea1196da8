/** Does Prometheus answer, and does it have metrics of machines? */
import { errorText } from "../../base/errors.ts";
import { availableNames, connect, nowS } from "../../ingest/prometheus/prometheus.ts";
import { CATALOG, type CatalogMetric } from "../../model/metric-catalog.ts";
import { type Line, linesOf, some } from "./line.ts";

interface MetricsServerSeen {
  readonly url: string | null;
  readonly match: string;
  readonly failure: string | null;
  /** Known metrics that it has, and that it lacks; null where it does not say. */
  readonly has: readonly string[] | null;
  readonly lacks: readonly string[];
  readonly hasGpus: boolean;
}

const { ok, warning, broken, none } = linesOf("prometheus");

export function judgeMetricsServer(seen: MetricsServerSeen): Line {
  const { url, match, failure, has, lacks } = seen;
  if (url === null)
    return none("not set up: faultline serve --prometheus URL also watches machines");
  if (failure !== null)
    return broken(`${url} does not answer: ${failure}`, `curl -s '${url}/api/v1/status/buildinfo'`);
  if (has === null) return ok(`${url} answers; it does not list its metrics`);
  const under = match === "" ? "" : ` under ${match}`;
  if (has.length === 0)
    return broken(
      `${url} answers, and has no metric of machines${under}`,
      match === ""
        ? "deploy/prometheus/scrape.yaml    # scrapes dcgm-exporter and node_exporter"
        : `curl -sG '${url}/api/v1/series' --data-urlencode 'match[]={${match}}'    # what the matchers select`,
    );
  if (!seen.hasGpus)
    return warning(
      `${url} has ${has.length} known metrics${under}, none of GPUs`,
      "docker run -d --gpus all -p 9400:9400 nvcr.io/nvidia/k8s/dcgm-exporter    # on each machine, then scrape it",
    );
  const missing = lacks.length === 0 ? "" : `; without ${some(lacks)}`;
  return ok(`${url} has ${has.length} known metrics${under}${missing}`);
}

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
