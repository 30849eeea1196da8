import type { Job } from "./job.ts";

/** Whether logs are all that there is: no dumps, stacks, operators, traces, metrics or probes beside them. */
export function isLogsAlone(job: Job): boolean {
  const { dumps, stacks, strayStacks, ras, operators } = job;
  const { kernels, probes, metrics, validations } = job;
  const others = [strayStacks, ras, operators, kernels, probes, metrics];
  return (
    dumps.size + stacks.size === 0 &&
    [...others, validations].every((list) => (list?.length ?? 0) === 0)
  );
}
