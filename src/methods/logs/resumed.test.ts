import { describe, expect, it } from "vitest";
import { shippedMatchers } from "../../library/shipped.ts";
import { analyseLogs } from "./analyse-logs.ts";
import { knownLines } from "./known-lines.ts";
import { resumed } from "./resumed.ts";
import { digestOf, type TestLine } from "../../../test/support/methods/log-digest.ts";

const NOBODY = { jobs: 0, has: () => false, hasRecord: () => false };
const T0 = Date.UTC(2026, 10, 15);

const kernel = (seconds: number, text: string, node = "node1"): TestLine => ({
  file: `dmesg.${node}.log`,
  text,
  timeMs: T0 + 1000 * seconds,
});
const waits = (seconds: number, server: string): TestLine =>
  kernel(seconds, `nfs: server ${server} not responding, still trying`);
const answers = (seconds: number, server: string): TestLine =>
  kernel(seconds, `nfs: server ${server} OK`);
const timeout = (seconds: number): TestLine => ({
  file: "rank0.log",
  rank: 0,
  text: "[rank0]: [PG ID 0 PG GUID 0(default_pg) Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.",
  timeMs: T0 + 1000 * seconds,
});

const causeOf = (...lines: TestLine[]) =>
  analyseLogs(digestOf(lines), shippedMatchers(), NOBODY).cause;

function open(...lines: TestLine[]): string[] {
  const digest = digestOf(lines);
  const known = knownLines(digest, shippedMatchers());
  const over = resumed(digest, known, new Uint8Array(digest.kept.length));
  return digest.kept.flatMap(({ text }, i) =>
    known[i]?.record.endedBy !== undefined && over[i] === 0 ? [text] : [],
  );
}

describe("a file server that paused", () => {
  it("is no cause once it answers again, even where nothing else tells of anything", () => {
    expect(causeOf(waits(0, "filer03"))).toMatchObject({ signature: "nfs.not-responding" });
    expect(causeOf(waits(0, "filer03"), answers(2, "filer03"))?.confidence ?? 0).toBeLessThan(0.35);
  });

  it("is one where another server answered", () => {
    expect(open(waits(0, "filer03"), answers(2, "filer01"))).toHaveLength(1);
  });

  it("is one where it answered earlier and paused again", () => {
    const again = [waits(0, "filer03"), answers(2, "filer03"), waits(60, "filer03")];
    expect(open(...again)).toHaveLength(1);
  });

  it("is none where several were out and all came back, in any order", () => {
    const out = ["filer01", "filer02", "filer03"].map((server, i) => waits(i, server));
    const back = ["filer02", "filer01", "filer03"].map((server, i) => answers(10 + i, server));
    expect(open(...out, ...back)).toEqual([]);
    expect(open(...out, ...back.slice(0, 1))).toHaveLength(2);
  });

  it("is one where it came back after the job had timed out", () => {
    expect(open(waits(0, "filer03"), answers(900, "filer03"), timeout(600))).toHaveLength(1);
    expect(open(waits(0, "filer03"), answers(2, "filer03"), timeout(600))).toEqual([]);
  });

  it("is one where programs were told that it timed out", () => {
    const gaveUp = kernel(0, "nfs: server filer03 not responding, timed out");
    expect(open(gaveUp, answers(2, "filer03"))).toHaveLength(1);
  });

  it("is known of Lustre by the client's device", () => {
    const lost = (device: string) =>
      kernel(
        0,
        `Lustre: ${device}: Connection to scratch-MDT0000 (at 10.9.0.4@o2ib) was lost; in progress operations using this service will wait for recovery to complete`,
      );
    const back = kernel(
      9,
      "Lustre: scratch-MDT0000-mdc-a: Connection restored to 10.9.0.5@o2ib (at 10.9.0.5@o2ib)",
    );
    expect(open(lost("scratch-MDT0000-mdc-a"), back)).toEqual([]);
    expect(open(lost("scratch-OST0001-osc-a"), back)).toHaveLength(1);
  });
});
