import { describe, expect, it } from "vitest";
import { jobOf } from "../../../../test/support/live/messages.ts";
import { JobRun } from "../job/job-run.ts";
import { standstillVerdict } from "./standstill-verdict.ts";

const ALL = { has: () => true };

function runOf(state: "running" | "gone"): JobRun {
  const report = jobOf("job", [0, 1]);
  const run = new JobRun(report, null);
  run.take("a", "m", report, ALL);
  run.ranks.get(1)!.state = state;
  return run;
}

describe("standstillVerdict", () => {
  it("says that a process died only where it is gone", () => {
    const dead = standstillVerdict(runOf("gone"), "crash", [1], "the process is gone", null, null);
    expect([dead.suspects[0]!.cause, dead.confidence]).toEqual(["process-gone", 0.6]);
    expect(dead.summary).toContain("rank 1 died");
    const says = "rank 1: ConnectionError";
    const alive = standstillVerdict(runOf("running"), "crash", [1], says, null, null);
    expect([alive.suspects[0]!.cause, alive.confidence]).toEqual(["unknown", 0.3]);
    expect(alive.summary).toContain(`tells of a failure, and nothing has gone on since (${says})`);
  });
});
