/** Names of machines come from agents, and an agent may lie: only what is a host name and nothing else gets to a hook. */
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?";
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
/** Slurm takes ALL for every node there is; nobody means the machine that the service runs on. */
const MEANS_OTHERS = ["all", "localhost", "default"];

export function isPlainHostName(name: string): boolean {
  return name.length <= 253 && HOST_NAME.test(name) && !MEANS_OTHERS.includes(name.toLowerCase());
}
