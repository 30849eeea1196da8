/** Does Prometheus answer, and does it have metrics of machines? */
import { type Line, linesOf, some } from "./line.ts";

export interface MetricsServerSeen {
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
