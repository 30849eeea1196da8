/** What the logs say, for a verdict that other evidence joins: the library's cause, with what it does not know. */
import { shippedMatchers } from "../../library/shipped.ts";
import type { Cause } from "../../model/cause.ts";
import type { Category } from "../../model/fault-record.ts";
import type { NewFinding, SuspectType } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import type { LogCause, LogReport } from "../../model/log-report.ts";
import type { Method } from "../../model/method.ts";
import { processEnded } from "../../model/process-ended.ts";
import { accusedRanks } from "./accused-ranks.ts";
import { analyseLogs } from "./analyse-logs.ts";

/** Logs are one witness among several. */
const MOST_WEIGHT = 0.85;
const LEAST_CONFIDENCE = 0.35;
const NO_POOL = { jobs: 0, has: () => false, hasRecord: () => false };

/**
 * What a process says of itself is the crash method's to judge, with times and echoes. The library adds what it does
 * not look for: machines, drivers, networks, storage, schedulers.
 */
const ACCUSED: Readonly<Partial<Record<Category, Accused>>> = {
  "hardware.network": { cause: "network-hang", type: "nic", makesWait: true },
  "hardware.accelerator": { cause: "gpu-error", type: "gpu" },
  "hardware.node": { cause: "process-gone", type: "machine" },
  "hardware.storage": { cause: "storage", type: "storage", makesWait: true },
  platform: { cause: "platform", type: "config" },
};

interface Accused {
  readonly cause: Cause;
  readonly type: SuspectType;
  /** Whoever uses it waits: it is a crash only where a process ended. */
  readonly makesWait?: boolean;
}

export const logCause: Method = {
  id: "logs/library",
  applies: ({ logDigest }) => logDigest !== undefined && logDigest.kept.length > 0,
  *run(job) {
    const report = analyseLogs(job.logDigest!, shippedMatchers(), NO_POOL);
    const { cause } = report;
    if (!cause || cause.confidence < LEAST_CONFIDENCE || cause.role === "cascade") return;
    yield findingOf(job, report, cause);
  },
};

function findingOf(job: Job, report: LogReport, cause: LogCause): NewFinding {
  const weight = Math.min(MOST_WEIGHT, cause.confidence);
  const where =
    cause.nodes.length > 0 && cause.nodes.length <= 3 ? ` (${cause.nodes.join(", ")})` : "";
  const says = `the logs say: ${cause.title}${where}`;
  const accused = ACCUSED[cause.category];
  const kind = accused?.makesWait && !processEnded(job) ? "hang" : "crash";
  const { ranks, because } = accusedRanks(job, cause, kind);
  const why = because === "" ? says : `${says}; ${because}`;
  return {
    says: why,
    weight: accused ? weight : weight / 2,
    at: cause.at ? [{ file: cause.at.file, line: cause.at.line }] : [],
    data: {
      category: cause.category,
      signature: cause.signature,
      owner: cause.owner,
      action: cause.action,
      stage: report.stage,
      captures: cause.captures,
      nodes: report.nodes.slice(0, 5).map(({ node, score }) => ({ node, score })),
    },
    accuses:
      accused && ranks.length > 0
        ? [
            {
              kind,
              type: accused.type,
              ranks,
              link: null,
              name: cause.nodes.length === 1 ? cause.nodes[0]! : null,
              cause: accused.cause,
              weight,
              why,
            },
          ]
        : [],
    clears: [],
  };
}
