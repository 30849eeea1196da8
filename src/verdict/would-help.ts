/** Which further file would settle what is open: the honest end of a verdict. */
import { rankWords } from "../base/text.ts";
import { factsOf, slowTimesOf } from "../model/facts.ts";
import type { Rank } from "../model/ids.ts";
import type { Suspect } from "../model/verdict.ts";
import type { Case } from "./case.ts";

/** Files of more ranks than these nobody fetches by hand. */
const MOST_FETCHED = 8;

export function wouldHelp(
  { job, kind, findings }: Case,
  suspects: readonly Suspect[],
  confidence: number,
): string[] {
  if (kind === "healthy")
    return (job.kernels?.length ?? 0) > 0 && !job.traceBaseline?.length
      ? ["traces of a healthy run (--baseline), which show whether it was slow from the start"]
      : [];
  const isSlow = kind === "fail-slow";
  const isNobody = isSlow && suspects.length === 0;
  const ranks = [...new Set(suspects.flatMap((suspect) => suspect.ranks))].sort((a, b) => a - b);
  const causes = new Set(suspects.map((suspect) => suspect.cause));
  const without = (have: ReadonlyMap<Rank, unknown>): string | null => {
    const missing = ranks.filter((rank) => !have.has(rank));
    return missing.length > 0 && missing.length <= MOST_FETCHED ? rankWords(missing) : null;
  };
  const noStack = without(job.stacks);
  const noLog = without(job.logs);
  const namesLine = factsOf(findings, "regressed-metric").some(({ call }) =>
    /\.py\(\d+\)/.test(call ?? ""),
  );
  const absent = [...job.ranks.keys()].filter((rank) => !job.dumps.has(rank));
  const isPartial = job.dumps.size > 0 && job.dumps.size < job.worldSize;
  const dumps =
    kind === "regression" && !namesLine
      ? "traces with Python stacks (torch.profiler with with_stack=True), which name the line"
      : kind !== "crash" && job.dumps.size === 0
        ? "flight-recorder dumps of all ranks (TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1)"
        : kind === "hang" && confidence < 0.9 && isPartial
          ? `flight-recorder dumps of ${rankWords(absent)}, if the files exist on their machines`
          : "";
  return [
    kind === "hang" && noStack !== null && (causes.has("cpu-stall") || confidence < 0.8)
      ? `Python stacks of ${noStack} (py-spy dump --pid <pid>, or faulthandler)`
      : "",
    dumps,
    isSlow && findings.some((finding) => slowTimesOf(finding)?.sinceStart)
      ? "a longer record in the next run (TORCH_FR_BUFFER_SIZE=20000), so that it reaches back to before the slowdown"
      : "",
    isNobody && job.dumps.size === 0
      ? "TORCH_NCCL_ENABLE_TIMING=1 with those dumps: durations of operators show which rank makes the others wait"
      : "",
    factsOf(findings, "stopped-rank").some(({ timing }) => timing === false)
      ? "TORCH_NCCL_ENABLE_TIMING=1 in the next run: it distinguishes a stuck GPU from a stuck network"
      : "",
    causes.has("network-hang")
      ? "NCCL_DEBUG=INFO logs and NIC error counters of these ranks; ncclras -v while the job hangs"
      : "",
    causes.has("process-gone") || causes.has("process-stopped")
      ? `dmesg and the scheduler's record of the machine of ${rankWords(ranks)}`
      : "",
    noLog === null ? "" : `the log of ${noLog}`,
    isNobody && job.dumps.size > 0
      ? "metrics of all machines around the change (DCGM, node exporter)"
      : "",
    isNobody && !job.kernels?.length && factsOf(findings, "even-ranks").length > 0
      ? "profiler traces of a slow iteration and, with --baseline, of a healthy run: they show what all ranks do longer"
      : "",
    kind === "undetermined" ? "the logs of all ranks up to the moment of failure" : "",
  ].filter((text) => text !== "");
}
