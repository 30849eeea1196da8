/** What work costs the processor: a bound on it holds on a busy machine too, one on the clock does not. */
export function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
