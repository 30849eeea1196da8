import { mkdtempSync, rmSync, closeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HEADER, KIND } from "../../../ingest/probe-ring/layout.ts";
import { answers, ask, heldBy, releaseTrap, setTrap, stacksRequest } from "./control.ts";
import { discover, type FoundRing } from "./discover.ts";
import { lastIteration } from "../iterations/last-iteration.ts";
import { thisMachine } from "../process-state.ts";
import { openRing } from "./ring-file.ts";
import { ringsOf } from "../select-run.ts";
import { TestRing } from "../../../../test/support/live/ring.ts";

let folder: string;
const machine = thisMachine();
const nowNs = (): bigint => process.hrtime.bigint();
const found = (): FoundRing[] => ringsOf(discover(folder, machine).runs);
const only = (): FoundRing => found()[0]!;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "faultline-agent-"))));
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("words to a process", () => {
  it("sets and clears a trap, with one deadline for all", () => {
    const rings = [0, 1].map((rank) => new TestRing({ folder, rank }));
    const before = nowNs();
    expect(setTrap(found(), 2_000_000_000n, machine)).toEqual([]);
    const deadlines = found().map(({ progress }) => progress.trapUntilNs);
    expect(deadlines[0]).toBe(deadlines[1]);
    expect(deadlines[0]! - before).toBeGreaterThanOrEqual(2_000_000_000n);
    expect(deadlines[0]! - before).toBeLessThan(60_000_000_000n);
    rings[1]!.long(HEADER.trappedNow, 2n);
    rings[1]!.long(HEADER.trappedCalls, 2n);
    expect(heldBy(found()).map(({ now }) => now)).toEqual([0, 2]);
    expect(releaseTrap(found())).toEqual([]);
    expect(found().map(({ progress }) => progress.trapUntilNs)).toEqual([0n, 0n]);
  });

  it("asks, and knows who answered", async () => {
    const [first, second] = [0, 1].map((rank) => new TestRing({ folder, rank, writer: "python" }));
    first!.word(HEADER.stacksWanted, 4);
    const { asked, troubles } = ask(found(), stacksRequest);
    expect(troubles).toEqual([]);
    expect(asked.map(({ number }) => number)).toEqual([5, 1]);
    second!.word(HEADER.stacksAnswered, 1);
    const silent = await answers(asked, stacksRequest, 50);
    expect(silent.map(({ ring }) => ring.header.rank)).toEqual([0]);
  });

  it("finds the last iteration", () => {
    const ring = new TestRing({ folder, writer: "python", records: 8 });
    for (let i = 0; i < 20; i++) ring.append({ kind: KIND.iteration, a: 100 + i });
    ring.tear();
    const fd = openRing(only());
    expect(lastIteration(fd, only())).toBe(119);
    closeSync(fd);
  });
});
