/** What the logs come to once single ranks are heard: the cause that a verdict on the same files names. */
import { logConfidenceOf } from "../model/facts.ts";
import type { Cause } from "../model/cause.ts";
import type { Category, FaultOwner } from "../model/fault-record.ts";
import type { LogDigest } from "../model/log-digest.ts";
import type { LogCause, LogReport } from "../model/log-report.ts";
import type { Suspect, Verdict } from "../model/verdict.ts";
import { isStop } from "./case.ts";

/** Of what only the ranks' behaviour tells. */
const CATEGORY: Partial<Record<Cause, Category>> = {
  "process-gone": "hardware.node",
  "process-stopped": "hardware.node",
  "gpu-hang": "hardware.accelerator",
  "gpu-error": "hardware.accelerator",
  "network-hang": "hardware.network",
  storage: "hardware.storage",
  scheduler: "platform",
  platform: "platform",
};
const OWNER: Partial<Record<Category, FaultOwner>> = {
  "hardware.node": "hardware",
  "hardware.accelerator": "hardware",
  "hardware.network": "network",
  "hardware.storage": "storage",
  platform: "platform",
};

/** The report as it is where the verdict rests on it; else with what the ranks tell as its cause. */
export function agreed(report: LogReport, verdict: Verdict, digest: LogDigest): LogReport {
  const [lead] = verdict.suspects;
  const { cause: before, alternatives } = report;
  // What only follows from a failure is not its cause where the verdict says that nothing, or something else, ended it.
  if (!lead && before && before.role !== "root" && verdict.kind !== "hang")
    return { ...report, cause: null, alternatives: [before, ...alternatives] };
  const isSame = lead?.cause === before?.cause && lead && restsOnReport(verdict, lead);
  if (!lead || !isStop(verdict) || isSame) return report;
  const cause = causeOf(verdict, lead, digest);
  return { ...report, cause, alternatives: before ? [before, ...alternatives] : alternatives };
}

function restsOnReport({ findings }: Verdict, { evidence }: Suspect): boolean {
  return findings.some(
    (finding) => evidence.includes(finding.id) && logConfidenceOf(finding) !== null,
  );
}

function causeOf(verdict: Verdict, lead: Suspect, { kept, files }: LogDigest): LogCause {
  const { method, at } = verdict.findings.find(({ id }) => lead.evidence.includes(id))!;
  const category = CATEGORY[lead.cause] ?? "user.program";
  const [place] = at;
  const line = kept.find((one) => files[one.file]!.name === place?.file && one.line === place.line);
  return {
    category,
    cause: lead.cause,
    signature: method,
    title: lead.why,
    role: "root",
    owner: OWNER[category] ?? "user",
    meaning: verdict.summary,
    action: verdict.actions[0]?.why ?? "Look at this rank first.",
    falseFriends: [],
    confidence: verdict.confidence,
    at: place && line ? { file: place.file, line: line.line, text: line.text } : null,
    places: at,
    nodes: lead.machine === null ? [] : [lead.machine],
    ranks: [...new Set(verdict.suspects.flatMap(({ ranks }) => ranks))].sort((a, b) => a - b),
    captures: {},
  };
}
