/** On rings of real jobs: what a summary says of a healthy job, a slow loader, and collections in every layer. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { RING_NAME } from "../../../ingest/probe-ring/layout.ts";
import { mean, quantile, type WorkSummary } from "../../../model/work-summary.ts";
import { RingFollower } from "../rings/follow-ring.ts";
import { RankTrack } from "./rank-track.ts";
import { inspectRing } from "../rings/ring-file.ts";
import { WorkTally } from "./work-tally.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-work-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The summary of one rank, all its iterations. */
function summaryOf(archive: string, rank: number): WorkSummary {
  const to = mkdtempSync(join(folder, "job-"));
  const from = fileURLToPath(
    new URL(`../../../../fixtures/rings/${archive}.tar.gz`, import.meta.url),
  );
  execFileSync("tar", ["xzf", from, "-C", to]);
  const files = readdirSync(to, { recursive: true, encoding: "utf8" });
  const open = (writer: string): RingFollower => {
    const file = files.find((name) => {
      const [, of, , by] = RING_NAME.exec(name) ?? [];
      return Number(of) === rank && by === writer && name.endsWith(".ring");
    });
    const ring = inspectRing(join(to, file!));
    if (typeof ring === "string") throw new Error(ring);
    const follower = new RingFollower(ring, { keepNs: 1e18, mostRecords: 1 << 16 });
    follower.poll(0);
    return follower;
  };
  const [python, native] = [open("python"), open("native")];
  const track = new RankTrack(rank);
  track.attach(python, native);
  const tally = new WorkTally();
  expect(tally.summary(0)).toBeNull();
  track.take(() => undefined, tally);
  expect(tally.summary(14_999)).toBeNull();
  const summary = tally.summary(15_000)!;
  // Nothing came since: the same is said again.
  expect(tally.summary(40_000)).toBe(summary);
  python.close();
  native.close();
  return summary;
}

describe("a summary of real rings", () => {
  const healthy = summaryOf("none", 1);

  it("has each iteration's parts, and no products where none are traced", () => {
    const { parts, synchronizations, shapes, transfers, programs } = healthy;
    expect(parts.step!.count.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(50);
    expect(Object.keys(parts)).toEqual([
      "step",
      "dataloader",
      "garbage-collection",
      "synchronization",
      "own",
      "issue-latency",
    ]);
    expect(synchronizations).toBeCloseTo(1, 1);
    expect(shapes).toEqual([]);
    expect(transfers.length).toBeGreaterThan(0);
    for (const { shape, ms } of transfers) {
      expect(shape).toMatch(/^(all_reduce|all_gather|reduce_scatter|broadcast)-\d+-\w+$/);
      expect(quantile(ms, 0.1)).toBeGreaterThan(0);
    }
    expect(programs.length).toBeGreaterThan(0);
  });

  it("shows a loader that takes 200 ms longer in the second half", () => {
    const { parts } = summaryOf("data", 1);
    const usual = quantile(healthy.parts.dataloader!, 0.9);
    expect(quantile(parts.dataloader!, 0.9) - usual).toBeGreaterThan(150);
    const sound = summaryOf("data", 3).parts.dataloader!;
    expect(quantile(sound, 0.9)).toBeLessThan(usual + 50);
  });

  it("shows collections in every layer of one rank", () => {
    const usual = mean(healthy.parts["garbage-collection"]!);
    const sick = mean(summaryOf("gc", 5).parts["garbage-collection"]!);
    expect(sick).toBeGreaterThan(2 * usual);
  });
});
