/** What ranks print beside what the engine's own faults make them print. */
import { hash, uniform } from "../../../src/simulate/cluster/noise.ts";
import type { RankFile } from "../../../src/simulate/emit/logs/rank-file.ts";
import { writeBackground, writeStormLine } from "./storm-lines.ts";
import type { Scenario } from "./scenario.ts";

export function alsoPrinted(
  scenario: Scenario,
): (file: RankFile, iteration: number, startNs: number) => void {
  const { storm, victim, spec, truths } = scenario;
  const stormy = new Set(storm?.ranks);
  const [truth] = truths;
  const isStop = truth !== undefined && truth.kind !== "fail-slow";
  return (file, iteration, startNs) => {
    writeBackground(file, iteration, startNs + 2e6, spec.seed);
    if (
      storm !== null &&
      stormy.has(file.rank) &&
      iteration >= storm.from &&
      iteration <= storm.to
    ) {
      const count = Math.floor(storm.rate + uniform(spec.seed, file.rank, iteration, 0x51));
      for (let n = 0; n < count; n++)
        writeStormLine(file, storm.kind, startNs + 1e7 * (n + 1), spec.seed + n);
    }
    if (
      victim !== null &&
      truth !== undefined &&
      file.machine === victim.machine &&
      iteration >= truth.fromIteration
    )
      writeComplaint(file, iteration, startNs, spec.seed, isStop);
  };
}

/** A machine that only waits, and says so more than anybody. */
function writeComplaint(
  file: RankFile,
  iteration: number,
  startNs: number,
  seed: number,
  isStop: boolean,
): void {
  if (isStop) {
    for (let s = 60; s < 600; s += 60)
      file.info(
        startNs + s * 1e9,
        `step ${iteration} has made no progress for ${s} s on ${file.host} (waiting in all_reduce)`,
        s < 300 ? "WARNING" : "ERROR",
      );
    return;
  }
  if (hash(seed, file.rank, iteration, 0x52) % 2 === 0)
    file.info(
      startNs + 3e6,
      `step ${iteration - 1} was slow on ${file.host}: timed out waiting for gradients, will retry the wait`,
      "WARNING",
    );
}
