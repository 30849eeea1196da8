/** One test for each row of docs/formats/flight-recorder.md. */
import { describe, expect, it } from "vitest";
import type { FlightDump } from "../../model/operators.ts";
import { COMPLETED, SCHEDULED, STARTED } from "../../model/operators.ts";
import { readBytes } from "../../../test/support/ingest/reader-contract.ts";
import { flightRecorder } from "./reader.ts";
import {
  closing,
  collective,
  completed,
  counters,
  dumpBytes,
  transfer,
  type Fields,
} from "../../../test/support/ingest/flight-entries.ts";

function read(entries: Fields[], status: Fields = {}, pp?: string): FlightDump {
  const members = pp === undefined ? {} : { pp };
  return readBytes(flightRecorder, "fr_0", dumpBytes(entries, status, members)).dumps![0]!;
}

function states({ ops }: FlightDump): [string, number][] {
  return Array.from(ops.state, (state, i) => [ops.names[ops.name[i]!]!, state]);
}

describe("a batch of sends and receives", () => {
  const parts = [transfer("send 0->1", 4), transfer("recv 0<-1", 4)];

  it("gives its state and times to its parts, and is no operator itself", () => {
    const dump = read([...parts, closing(4, completed(9_000_000, 2.5)), ...waiting(5)]);
    expect(states(dump)).toEqual([
      ["send 0->1", COMPLETED],
      ["recv 0<-1", COMPLETED],
      ["send 0->1", STARTED],
      ["recv 0<-1", STARTED],
    ]);
    expect(dump.ops.completedNs[0]).toBe(5_000_000);
    expect(dump.unknownEnds).toBe(0);
  });

  it("is counted once: its receive has its duration", () => {
    const { ops } = read([...parts, closing(4, completed(9_000_000, 2.5))]);
    expect([...ops.durationMs]).toEqual([0, 2.5]);
    const sends = read([transfer("send 0->1", 4), closing(4, completed(9_000_000, 1.5))]);
    expect([...sends.ops.durationMs]).toEqual([1.5]);
  });

  it("that took a collective's number, as before PyTorch 2.6, is found all the same", () => {
    const old = (seq: number, state: Fields): Fields[] => [
      transfer("send 0->1", 0, { collective_seq_id: seq }),
      transfer("recv 0<-1", 0, { collective_seq_id: seq }),
      closing(0, { collective_seq_id: seq, ...state }),
    ];
    const dump = read([...old(1, completed(9_000_000)), ...old(2, { state: "started" })]);
    expect([...dump.ops.state]).toEqual([COMPLETED, COMPLETED, STARTED, STARTED]);
    expect([...dump.ops.p2pSeq]).toEqual([1, 1, 2, 2]);
    expect([...dump.ops.isP2p]).toEqual([1, 1, 1, 1]);
  });

  it("whose parts the ring overwrote leaves nothing", () => {
    const dump = read([closing(3, completed(8_000_000)), ...parts, closing(4)]);
    expect(states(dump).map(([name]) => name)).toEqual(["send 0->1", "recv 0<-1"]);
  });

  it("that is being put together, or was captured into a graph, is no evidence of a hang", () => {
    const dump = read([transfer("send 0->1", 3), closing(3, completed(8_000_000)), ...parts]);
    expect([...dump.ops.state]).toEqual([COMPLETED, COMPLETED, COMPLETED]);
    expect(dump.unknownEnds).toBe(2);
  });

  it("has ended where something later of its group has", () => {
    const later = [transfer("recv 0<-1", 5), closing(5, completed(9_000_000))];
    const dump = read([...parts, ...later]);
    expect([...dump.ops.state]).toEqual([COMPLETED, COMPLETED, COMPLETED]);
    expect(dump.unknownEnds).toBe(0);
  });
});

/** A batch that runs. */
function waiting(p2pSeq: number): Fields[] {
  return [
    transfer("send 0->1", p2pSeq),
    transfer("recv 0<-1", p2pSeq),
    closing(p2pSeq, { state: "started", time_discovered_started_ns: 20_000_000 }),
  ];
}

describe("a dump of active entries only", () => {
  const ended = [transfer("send 0->1", 4), transfer("recv 0<-1", 4), transfer("recv 0<-1", 5)];

  it("keeps the parts of batches that ended, which the counter tells", () => {
    const dump = read(ended, { 1: counters(5, 5, 5) });
    expect([...dump.ops.state]).toEqual([COMPLETED, COMPLETED, COMPLETED]);
    expect(dump).toMatchObject({ onlyActive: true, unknownEnds: 0 });
  });

  it("says that it does not know where no counter does", () => {
    const dump = read(ended);
    expect([...dump.ops.state]).toEqual([COMPLETED, COMPLETED, COMPLETED]);
    expect(dump).toMatchObject({ onlyActive: true, unknownEnds: 3 });
  });

  it("shows a batch that is pending, because what closes it is there", () => {
    const dump = read([...ended, ...waiting(6)], { 1: counters(6, 6, 5) });
    expect([...dump.ops.state]).toEqual([COMPLETED, COMPLETED, COMPLETED, STARTED, STARTED]);
  });

  it("tells batches of one from single sends by the counter, for certain between two ranks only", () => {
    const ones = [transfer("send 0->1", 4), transfer("send 0->1", 5)];
    expect(read(ones, { 1: counters(5, 5, 5) }).unknownEnds).toBe(2);
    expect(read(ones, { 1: counters(5, 5, 5) }, "[0, 2]").unknownEnds).toBe(0);
    expect([...read(ones, { 1: counters(5, 4, 3) }).ops.state]).toEqual([SCHEDULED, SCHEDULED]);
  });
});

describe("a send of its own", () => {
  it("has ended where a later one with the same peer has, whatever others did", () => {
    const later = transfer("send 0->1", 6, completed(9_000_000));
    const dump = read([transfer("send 0->1", 4), transfer("send 0->3", 5), later]);
    expect([...dump.ops.state]).toEqual([COMPLETED, SCHEDULED, COMPLETED]);
  });
});

describe("a coalesced collective", () => {
  it("of format 2.7 on is one operator with the sizes of its parts", () => {
    const { ops } = read([
      collective("all_reduce", 7, { input_sizes: [[10]] }),
      collective("all_reduce", 7, { input_sizes: [[20, 2]] }),
      collective("coalesced", 7, { input_sizes: [], ...completed(9_000_000, 3) }),
    ]);
    expect(ops.count).toBe(1);
    expect(ops.names[ops.name[0]!]).toBe("all_reduce_coalesced");
    expect([ops.seq[0], ops.inputNumel[0], ops.durationMs[0], ops.state[0]]).toEqual([
      7,
      50,
      3,
      COMPLETED,
    ]);
  });

  it("keeps a name that says what was called", () => {
    const parts = [collective("_broadcast_oop", 3), collective("_broadcast_oop", 3)];
    const { ops } = read([...parts, collective("ALLGATHER_coalesced", 3)]);
    expect([ops.count, ops.names[ops.name[0]!], ops.state[0]]).toEqual([
      1,
      "ALLGATHER_coalesced",
      SCHEDULED,
    ]);
  });

  it("without parts, as before 2.7 and from the fast path, is what it says", () => {
    const dump = read([collective("coalesced", 3), collective("allreduce_coalesced", 4)]);
    expect(states(dump)).toEqual([
      ["coalesced", SCHEDULED],
      ["allreduce_coalesced", SCHEDULED],
    ]);
  });
});

describe("an entry that was let go of", () => {
  it("before it completed has timed out; Gloo's has ended", () => {
    const nccl = read([collective("all_reduce", 1, { retired: true })]);
    const gloo = read([
      collective("all_reduce", 1, { retired: true, profiling_name: "gloo:all_reduce" }),
    ]);
    expect([nccl.ops.state[0], gloo.ops.state[0]]).toEqual([SCHEDULED, COMPLETED]);
  });

  it("has the time at which the watchdog saw it end; others have the time of the dump", () => {
    const dump = read([
      collective("all_reduce", 1, completed(50_000_000)),
      collective("all_reduce", 2, { ...completed(90_000_000), retired: false }),
      collective("all_reduce", 3, { state: "started", time_discovered_started_ns: 90_000_100 }),
    ]);
    expect([...dump.ops.completedNs]).toEqual([49_000_000, NaN, NaN]);
    expect(dump.takenNs).toBe(89_000_100);
    expect(read([collective("all_reduce", 1, completed(50_000_000))]).takenNs).toBeUndefined();
  });
});

describe("a group of a device mesh", () => {
  it("is named by its entries, where its configuration does not", () => {
    const { groups } = read([collective("all_reduce", 1), transfer("send 0->1", 1)]);
    expect(groups.map(({ desc }) => desc)).toEqual(["mesh_pp", "mesh_dp"]);
  });
});
