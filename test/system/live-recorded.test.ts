/** A recorded job, played again to the agent and the service: what they say without a GPU is what they said beside it. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import type { Incident } from "../../src/model/incident.ts";
import { recordedRings } from "../support/live/recorded-rings.ts";
import { rehearseRecorded } from "../support/live/ring-rehearsal.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-recorded-job-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("names a slow GPU and a slow loader of a Transformers job that has the plug-in alone, and nobody else", async () => {
  const archive = fileURLToPath(
    new URL("../../fixtures/live/hf-accumulated.tar.gz", import.meta.url),
  );
  execFileSync("tar", ["xzf", archive, "-C", folder]);
  const job = recordedRings(join(folder, "rings"));
  const rehearsal = await rehearseRecorded(job);
  await rehearsal.run((job.endMs - job.startMs) / 1000);
  await rehearsal.close();
  const last = new Map<string, Incident>(rehearsal.told.map((one) => [one.id, one]));
  const accused = [...last.values()].map(({ state, verdict }) => [
    state,
    ...(verdict?.suspects ?? []).map(({ ranks, cause }) => `${ranks.join()} ${cause}`),
  ]);
  expect(accused).toEqual([
    ["resolved", "6 gpu-slow"],
    ["resolved", "2 cpu-stall"],
  ]);
});
