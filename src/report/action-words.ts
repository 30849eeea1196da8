/** What people read in place of an action's word, which is for programs: hooks, drivers and scripts know it. */
interface Named {
  readonly do: string;
  readonly title?: string;
  readonly target: string;
}

const TITLES: Readonly<Record<string, string>> = {
  "check-code": "Check the code",
  "check-cpu": "Check the CPU",
  "check-data": "Check the data",
  "check-gpu": "Check the GPU",
  "check-heap": "Check the heap",
  "check-machine": "Check the machine",
  "check-memory": "Check the memory",
  "check-network": "Check the network",
  "check-platform": "Check the platform",
  "check-storage": "Check the storage",
  "continue-process": "Let the process go on",
  "cordon-node": "Cordon the node",
  "dump-stacks": "Dump the stack",
  "exclude-node": "Exclude the node",
  "fix-code": "Fix the code",
  "fix-config": "Fix the configuration",
  "fix-environment": "Fix the environment",
  "fix-kernel": "Fix the kernel",
  "fuse-kernels": "Fuse the kernels",
  "look-closer": "Look closer",
  "micro-batches": "Share out the micro-batches",
  "pad-matrix": "Pad the matrix",
  "rebalance-microbatches": "Rebalance the micro-batches",
  "reduce-memory": "Reduce the memory",
  "replace-link": "Replace the cable, transceiver or NIC",
  "replace-machine": "Replace the machine",
  "rerun-blocking": "Rerun with blocking launches",
  "restart-job": "Restart the job",
  "restart-without": "Restart without the machine",
  "resume-job": "Resume the job",
  "swap-nodes": "Swap the nodes",
  "trace-python": "Trace the Python code",
};

/** "Check the machine"; a word of somebody's own hook stays as it is. */
export function actionTitle({ do: what, title }: Omit<Named, "target">): string {
  return title ?? (Object.hasOwn(TITLES, what) ? TITLES[what]! : what);
}

/** "Check the machine · node003 (rank 3)" */
export function actionHead(action: Named): string {
  return `${actionTitle(action)} · ${action.target}`;
}
