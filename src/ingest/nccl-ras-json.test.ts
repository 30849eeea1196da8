import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ncclRasJson } from "./nccl-ras-json.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";

const rank = (r: number, allReduce: number, asyncError = 0): object => ({
  rank: r,
  host: "10.0.0.1",
  pid: 700 + r,
  cuda_dev: r,
  nvml_dev: r,
  status: {
    init_state: 0,
    async_error: asyncError,
    finalize_called: false,
    destroy_flag: false,
    abort_flag: false,
  },
  collective_counts: { Broadcast: 0, AllGather: 3, AllReduce: allReduce },
});
const missing = (r: number, unresponsive: boolean, dead: boolean): object => ({
  rank: r,
  host: r === 9 ? "unknown" : "10.0.0.2",
  pid: r === 9 ? -1 : 700 + r,
  cuda_dev: r,
  nvml_dev: r,
  status: { unresponsive, considered_dead: dead },
});
const REPORT = JSON.stringify(
  {
    nccl_version: "2.28.9",
    cuda_runtime_version: 13000,
    cuda_driver_version: 13000,
    timestamp: "2026-11-15 00:41:53",
    communicators_count: 2,
    communicators: [
      {
        hash: "0x82e0592126c6ef2",
        secondary_hash: "0x1:0x2",
        size: 5,
        ranks_count: 2,
        missing_ranks_count: 3,
        ranks: [rank(0, 256), rank(1, 240, 6)],
        missing_ranks: [missing(2, true, false), missing(3, true, true), missing(9, false, false)],
      },
      {
        hash: "0xff",
        secondary_hash: "0x1:0x3",
        size: 1,
        ranks_count: 1,
        missing_ranks_count: 0,
        ranks: [rank(0, 7, 7)],
        missing_ranks: [],
      },
    ],
    ras: { collection_time_sec: 0.001, timeouts_count: 0 },
  },
  null,
  2,
);

describe("RAS JSON", () => {
  it("gives counts, errors and missing ranks, with hashes as the text form prints them", () => {
    const { ras, defects, records } = readBytes(ncclRasJson, "ras.json", REPORT);
    expect(defects).toEqual([]);
    expect(records).toBe(2);
    const [first] = ras?.communicators ?? [];
    expect(first).toMatchObject({ hash: "082e0592126c6ef2", size: 5, line: 8 });
    expect(first?.missing.map((m) => [m.commRank, m.host, m.pid, m.state])).toEqual([
      [2, "10.0.0.2", 702, "unresponsive"],
      [3, "10.0.0.2", 703, "dead"],
      [9, "", -1, "missing"],
    ]);
    expect(first?.counts.map((c) => `${c.commRank} ${c.collective} ${c.launched}`)).toEqual([
      "0 AllGather 3",
      "0 AllReduce 256",
      "1 AllGather 3",
      "1 AllReduce 240",
    ]);
    expect(ras?.missingProcesses.map((p) => p.pid)).toEqual([702, 703]);
  });

  it("keeps the later of two answers, and the whole communicators of a cut one", () => {
    const later = REPORT.replace('"AllReduce": 240', '"AllReduce": 241');
    const both = readBytes(ncclRasJson, "ras.json", `OK\n${REPORT}\n${later}`);
    expect(both.ras?.communicators).toHaveLength(2);
    expect(both.ras?.communicators[0]?.counts[3]?.launched).toBe(241);
    const cut = readBytes(ncclRasJson, "ras.json", REPORT.slice(0, REPORT.indexOf("0xff") + 60));
    expect(cut.ras?.communicators.map((c) => c.hash)).toEqual(["082e0592126c6ef2"]);
    expect(cut.defects).toHaveLength(1);
  });

  it("reads the same at every chunk size and survives a cut at every byte", () => {
    const [first, ...others] = readAtAllSizes(ncclRasJson, "f", REPORT);
    for (const other of others) expect(other).toEqual(first);
    for (const reading of readCutEverywhere(ncclRasJson, "f", REPORT))
      expect(reading.ras).toBeDefined();
  });

  it("survives random bytes and JSON of another shape", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (b) => void readBytes(ncclRasJson, "f", b)),
    );
    const odd = fc
      .json()
      .map(
        (j) =>
          `{"communicators":[{"hash":"0x1","ranks":[{"rank":${j}}],"missing_ranks":${j}},${j}]}`,
      );
    fc.assert(fc.property(odd, (text) => void readBytes(ncclRasJson, "f", text)));
  });

  it("recognises its format and nothing else", () => {
    expect(sniffs(ncclRasJson, REPORT)).toBe(true);
    expect(sniffs(ncclRasJson, `OK\n${REPORT}`)).toBe(true);
    for (const text of ["", "{}", '{"nccl_version":"2.27"}', "[1]"])
      expect(sniffs(ncclRasJson, text)).toBe(false);
  });
});
