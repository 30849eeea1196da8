// Runs the compiled command in this process and reports on stderr what it took: wall, CPU, peak memory.
const started = performance.now();
process.on("exit", () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  const figures = {
    wallMs: performance.now() - started,
    cpuMs: (userCPUTime + systemCPUTime) / 1000,
    peakMb: maxRSS / 1024,
  };
  process.stderr.write(`@@${JSON.stringify(figures)}\n`);
});
await import("../dist/cli/main.js");
