/** `/metrics`, in the text format that Prometheus reads (version 0.0.4). */
import { getOrInsert } from "../../../base/group-by.ts";
import { harmless } from "../../../base/text.ts";
import type { JobView, ServiceStats } from "../view.ts";

export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Figures of the process and of its HTTP side. */
export interface OwnFigures {
  readonly version: string;
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
  readonly eventStreams: number;
  readonly droppedStreams: number;
  readonly requests: RequestCounts;
}

/** Answers by route and status. Routes are those of our table, so there are few. */
export interface RequestCounts {
  add(route: string, status: number): void;
  entries(): readonly { readonly route: string; readonly status: number; readonly count: number }[];
}

export function countRequests(): RequestCounts {
  const counts = new Map<string, { route: string; status: number; count: number }>();
  return {
    add(route, status) {
      getOrInsert(counts, `${status} ${route}`, () => ({ route, status, count: 0 })).count++;
    },
    entries: () => [...counts.values()],
  };
}

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];
const HEALTHS = ["learning", "healthy", "slow", "hung", "failed", "silent", "ended"] as const;
const QUANTILES = [0.5, 0.9, 0.95, 0.99, 1];
/** Jobs that get series of their own. */
const MOST_JOBS = 1000;

export function metricsText(
  /** null for a caller who sees some jobs only: figures of the whole service are left out. */
  stats: ServiceStats | null,
  jobs: readonly JobView[],
  own: OwnFigures,
): string {
  const lines: string[] = [];
  const add = (name: string, type: string, help: string, samples: readonly Sample[]): void => {
    lines.push(`# HELP faultline_${name} ${help}`, `# TYPE faultline_${name} ${type}`);
    for (const [labels, value] of samples)
      lines.push(`faultline_${name}${labelText(labels)} ${numberText(value)}`);
  };
  const gauge = (name: string, help: string, value: number): void =>
    add(name, "gauge", help, [[{}, value]]);
  const counter = (name: string, help: string, value: number): void =>
    add(`${name}_total`, "counter", help, [[{}, value]]);

  if (stats === null) {
    gauge("jobs", "Jobs that this service watches.", jobs.length);
    addJobs(jobs.slice(0, MOST_JOBS), add);
    return `${lines.join("\n")}\n`;
  }
  add("build_info", "gauge", "Which version runs; always 1.", [[{ version: own.version }, 1]]);
  gauge("start_time_seconds", "When the service began, since 1970.", stats.startedMs / 1000);
  gauge("agents", "Agents that are connected.", stats.agents);
  gauge("jobs", "Jobs that this service watches.", stats.jobs);
  gauge("ranks", "Ranks of those jobs that have reported.", stats.ranks);
  gauge("leases", "Jobs whose lease this service holds.", stats.jobs);
  gauge("open_incidents", "Incidents that are not resolved.", stats.openIncidents);
  counter("incidents", "Incidents opened.", stats.incidentsTotal);
  counter("points", "Iterations of single ranks that were reported.", stats.points);
  counter("reports", "Reports of agents.", stats.reports);
  counter("report_bytes", "Bytes of reports.", stats.reportBytes);
  counter("refused_reports", "Reports that were malformed or not allowed.", stats.refusedReports);
  counter("dropped_points", "Points that agents could not keep.", stats.droppedPoints);
  counter(
    "fetched_bytes",
    "Bytes fetched from agents for verdicts on slowdowns.",
    stats.fetchedBytes,
  );
  counter("localizations", "Verdicts on slowdowns that were made.", stats.localizations);
  add(
    "verdict_seconds",
    "summary",
    "From onset to verdict, over the last of them.",
    quantiles(stats.verdictSeconds),
  );
  gauge("history_pending", "Writes that the history has not confirmed yet.", stats.historyPending);
  counter("history_failures", "Writes to the history that failed.", stats.historyFailures);
  counter("alerts_sent", "Alerts delivered.", stats.alertsSent);
  counter("alert_failures", "Deliveries of alerts that failed.", stats.alertFailures);
  addJobs(jobs.slice(0, MOST_JOBS), add);
  add(
    "http_requests_total",
    "counter",
    "Answers by route and status.",
    own.requests
      .entries()
      .map(({ route, status, count }) => [{ route, status: String(status) }, count]),
  );
  gauge("event_streams", "Readers of live events.", own.eventStreams);
  counter("event_streams_dropped", "Readers that did not keep up.", own.droppedStreams);
  counter("process_cpu_seconds", "CPU time of the service.", own.cpuSeconds);
  gauge("process_resident_memory_bytes", "Resident memory of the service.", own.residentBytes);
  gauge("process_heap_bytes", "JavaScript heap in use.", own.heapBytes);
  return `${lines.join("\n")}\n`;
}

function addJobs(
  jobs: readonly JobView[],
  add: (name: string, type: string, help: string, samples: readonly Sample[]) => void,
): void {
  const perJob = (name: string, help: string, value: (job: JobView) => number | null): void => {
    const samples = jobs.flatMap((job): Sample[] => {
      const found = value(job);
      return found === null ? [] : [[{ job: job.job }, found]];
    });
    add(`job_${name}`, "gauge", help, samples);
  };
  const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);
  add(
    "job_health",
    "gauge",
    "1 for the state that a job is in.",
    jobs.flatMap((job) =>
      HEALTHS.map((health) => [{ job: job.job, health }, Number(job.health === health)] as const),
    ),
  );
  perJob("iteration_seconds", "What an iteration takes now.", (job) => seconds(job.levelMs));
  perJob("baseline_seconds", "What an iteration takes when healthy.", (job) =>
    seconds(job.baselineMs),
  );
  perJob("last_iteration", "Number of the last iteration.", (job) => job.lastIteration);
  perJob("wasted_gpu_seconds", "GPU time that incidents have cost so far.", (job) =>
    seconds(job.wastedGpuMs),
  );
  perJob("open_incident", "1 while an incident of the job is open.", (job) =>
    Number(job.incident !== null),
  );
}

/** Nearest rank; no samples where there was no verdict yet. */
function quantiles(values: readonly number[]): Sample[] {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return [];
  return QUANTILES.map((q) => [
    { quantile: String(q) },
    sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)]!,
  ]);
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => {
    const escaped = harmless(value).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
    return `${name}="${escaped}"`;
  });
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

function numberText(value: number): string {
  if (value === Infinity) return "+Inf";
  if (value === -Infinity) return "-Inf";
  return String(value);
}
