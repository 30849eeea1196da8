/** Which further file would settle what is open: the honest end of a verdict. */
import { rankWords } from "../base/text.ts";
import { factOf, slowTimesOf } from "../model/facts.ts";
import type { Finding, VerdictKind } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { Suspect } from "../model/verdict.ts";

export function wouldHelp(
  job: Job,
  findings: readonly Finding[],
  suspects: readonly Suspect[],
  kind: VerdictKind,
  confidence: number,
): string[] {
  if (kind === "healthy")
    return (job.kernels?.length ?? 0) > 0 && !job.traceBaseline?.length
      ? ["traces of a healthy run (--baseline), which show whether it was slow from the start"]
      : [];
  const help: string[] = [];
  const ranks = [...new Set(suspects.flatMap((suspect) => suspect.ranks))].sort((a, b) => a - b);
  const causes = new Set(suspects.map((suspect) => suspect.cause));
  const noStack = ranks.filter((rank) => !job.stacks.has(rank));
  if (
    kind === "hang" &&
    noStack.length > 0 &&
    noStack.length <= 8 &&
    (causes.has("cpu-stall") || confidence < 0.8)
  ) {
    help.push(`Python stacks of ${rankWords(noStack)} (py-spy dump --pid <pid>, or faulthandler)`);
  }
  const regressed = findings.map((finding) => factOf(finding, "regressed-metric"));
  if (kind === "regression" && !regressed.some((fact) => /\.py\(\d+\)/.test(fact?.call ?? ""))) {
    help.push(
      "traces with Python stacks (torch.profiler with with_stack=True), which name the line",
    );
  } else if (kind !== "crash" && job.dumps.size === 0) {
    help.push(
      "flight-recorder dumps of all ranks (TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1)",
    );
  } else if (
    kind === "hang" &&
    confidence < 0.9 &&
    job.dumps.size > 0 &&
    job.dumps.size < job.worldSize
  ) {
    const absent = [...job.ranks.keys()].filter((rank) => !job.dumps.has(rank));
    help.push(
      `flight-recorder dumps of ${rankWords(absent)}, if the files exist on their machines`,
    );
  }
  if (kind === "fail-slow" && findings.some((finding) => slowTimesOf(finding)?.sinceStart)) {
    help.push(
      "a longer record in the next run (TORCH_FR_BUFFER_SIZE=20000), so that it reaches back to before the slowdown",
    );
  }
  if (kind === "fail-slow" && suspects.length === 0 && job.dumps.size === 0) {
    help.push(
      "TORCH_NCCL_ENABLE_TIMING=1 with those dumps: durations of operators show which rank makes the others wait",
    );
  }
  if (findings.some((finding) => factOf(finding, "stopped-rank")?.timing === false)) {
    help.push(
      "TORCH_NCCL_ENABLE_TIMING=1 in the next run: it distinguishes a stuck GPU from a stuck network",
    );
  }
  if (causes.has("network-hang")) {
    help.push(
      "NCCL_DEBUG=INFO logs and NIC error counters of these ranks; ncclras -v while the job hangs",
    );
  }
  if (causes.has("process-gone") || causes.has("process-stopped")) {
    help.push(`dmesg and the scheduler's record of the machine of ${rankWords(ranks)}`);
  }
  const noLog = ranks.filter((rank) => !job.logs.has(rank));
  if (noLog.length > 0 && noLog.length <= 8) help.push(`the log of ${rankWords(noLog)}`);
  if (kind === "fail-slow" && suspects.length === 0 && job.dumps.size > 0) {
    help.push("metrics of all machines around the change (DCGM, node exporter)");
  }
  if (
    kind === "fail-slow" &&
    suspects.length === 0 &&
    !job.kernels?.length &&
    findings.some((finding) => factOf(finding, "even-ranks"))
  ) {
    help.push(
      "profiler traces of a slow iteration and, with --baseline, of a healthy run: they show what all ranks do longer",
    );
  }
  if (kind === "undetermined") help.push("the logs of all ranks up to the moment of failure");
  return help;
}
