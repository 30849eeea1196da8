import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { thousands } from "../base/text.ts";
import { COMPLETED, SCHEDULED, STARTED } from "../model/operators.ts";
import { COLLECTION, ITERATION, PYTHON_CALL, SEND_WAITS_FOR_WIRE } from "../model/probe.ts";
import type { Defect } from "../model/reading.ts";
import { recognise } from "./formats.ts";
import { probeRing } from "./probe-ring.ts";
import { CONNECTION, FLAG, HEADER, KIND, RECORD, RECORD_BYTES } from "./probe-ring/layout.ts";
import { PAGE_BYTES } from "./probe-ring/ring-bytes.ts";
import { RingWriter } from "../../test/support/ingest/ring-writer.ts";
import { readBytes, sniffs } from "../../test/support/ingest/reader-contract.ts";
import { openFile, type SourceFile } from "./sources.ts";
import { runs } from "../../test/support/cases.ts";

const MS = 1e6;

function native(): RingWriter {
  const ring = new RingWriter({ rank: 3, worldSize: 8, host: "h3", pid: 77, gpu: 3, records: 16 });
  const tp = ring.comm(0xabcn, 1, 2, "TP", 3);
  const pp = ring.comm(0xdefn, 0, 4);
  const timed = { dtype: 9, flags: FLAG.gpuStart | FLAG.gpuEnd };
  const all = { kind: KIND.collective, func: 1, group: tp, a: 1024, ...timed };
  ring.record({ ...all, b: 1, issuedNs: 1 * MS, startedNs: 2 * MS, endedNs: 5 * MS });
  ring.record({ ...all, func: 2, b: 2, issuedNs: 3 * MS, startedNs: 6 * MS });
  ring.record({ ...all, b: 3, issuedNs: 4 * MS });
  const p2p = { kind: KIND.p2p, group: pp, c: 2, a: 64, ...timed };
  ring.record({ ...p2p, func: 1, b: 1, issuedNs: 5 * MS, startedNs: 5 * MS, endedNs: 6 * MS });
  ring.record({ ...p2p, func: 2, c: 3, b: 2, issuedNs: 6 * MS, startedNs: 7 * MS });
  ring.heartbeat(9 * MS);
  return ring;
}

describe("the reader of rings", () => {
  it("is the one that is asked, whatever the file is called", () => {
    const { bytes } = native();
    expect(sniffs(probeRing, bytes)).toBe(true);
    expect(sniffs(probeRing, "FLTRING but a text")).toBe(false);
    const head = { name: "x", bytes, text: Buffer.from(bytes).toString("latin1") };
    expect(recognise(head)?.format).toBe("probe-ring");
  });

  it("tells operators as the flight recorder does", () => {
    const ring = native();
    ring.copied(20 * MS, "S", "futex_wait");
    const { rank, dumps, probes, worldSize, defects } = readBytes(probeRing, "a.ring", ring.bytes);
    expect(defects).toEqual([]);
    expect([rank, worldSize]).toEqual([3, 8]);
    const [dump] = dumps!;
    const { ops, groups } = dump!;
    expect(groups).toMatchObject([
      { name: "0000000000000abc", desc: "TP", own: { groupRank: 1, size: 2 }, enqueued: 3 },
      { name: "0000000000000def", desc: "", own: { groupRank: 0, size: 4 } },
    ]);
    expect([...ops.name].map((name) => ops.names[name])).toEqual([
      "all_reduce",
      "all_gather",
      "all_reduce",
      "send 0->2",
      "recv 0<-3",
    ]);
    expect([...ops.state]).toEqual([COMPLETED, STARTED, SCHEDULED, COMPLETED, STARTED]);
    expect([...ops.seq.subarray(0, 3)]).toEqual([1, 2, 3]);
    expect([...ops.peer]).toEqual([-1, -1, -1, 2, 3]);
    expect([...ops.isSend.subarray(3)]).toEqual([1, 0]);
    expect(ops.createdNs[0]).toBe(1 * MS);
    expect(ops.durationMs[0]).toBe(3);
    expect(ops.outputNumel[1]).toBe(2048);
    expect(ops.dtypes[ops.dtype[0]!]).toBe("BFloat16");
    expect(dump!.timing).toBe(true);
    expect(dump!.takenNs).toBe(20 * MS);
    expect(dump!.epochNs).toBe(1_767_225_600_000_000_000n);
    expect(probes![0]).toMatchObject({
      host: "h3",
      pid: 77,
      gpu: 3,
      state: "S",
      waitsIn: "futex_wait",
    });
  });

  it("keeps times exact on a machine that is up for a year, and follows a clock that was set", () => {
    const ring = new RingWriter({ rank: 0, monotonicNs: 31_536_000_000_000_001n, records: 4 });
    const comm = ring.comm(1n, 0, 2);
    ring.record({ kind: KIND.collective, func: 1, group: comm, b: 1, issuedNs: 12_345 });
    ring.anchor(2e9, 3_600_000_000_000n);
    const [dump] = readBytes(probeRing, "a.ring", ring.bytes).dumps!;
    expect(dump!.ops.createdNs[0]).toBe(12_345);
    expect(dump!.epochNs).toBe(1_767_225_600_000_000_000n + 3_600_000_000_000n);
  });

  it("does not take what nobody timed for hung, and says how much of it there is", () => {
    const ring = new RingWriter({ rank: 0, records: 16 });
    const comm = ring.comm(1n, 0, 2);
    const lone = ring.comm(2n, 0, 1);
    const all = { kind: KIND.collective, func: 1, group: comm };
    ring.record({ ...all, b: 1, flags: FLAG.untimed, issuedNs: 1 });
    ring.record({ ...all, b: 2, issuedNs: 2 });
    ring.record({ ...all, b: 3, issuedNs: 3, startedNs: 4, endedNs: 5 });
    ring.record({ ...all, b: 4, flags: FLAG.untimed, issuedNs: 6 });
    ring.record({ ...all, b: 1, group: lone, issuedNs: 7 });
    const [dump] = readBytes(probeRing, "a.ring", ring.bytes).dumps!;
    expect([...dump!.ops.state]).toEqual([2, 2, 2, 2, 2]);
    expect(dump!.unknownEnds).toBe(1);
  });

  it("takes the first pending operator to run where starts are not seen in its communicator", () => {
    const states = (isSeenRunning: boolean): number[] => {
      const ring = new RingWriter({ rank: 0, records: 16 });
      const inside = ring.comm(1n, 0, 2);
      const between = ring.comm(2n, 0, 2);
      const all = { kind: KIND.collective, func: 1 };
      ring.record({ ...all, group: inside, b: 1, issuedNs: 1, endedNs: 2 });
      ring.record({ ...all, group: between, b: 1, issuedNs: 3, startedNs: 4, endedNs: 5 });
      ring.record({ ...all, group: inside, b: 2, issuedNs: 6 });
      const running = isSeenRunning ? { startedNs: 8 } : {};
      ring.record({ ...all, group: between, b: 2, issuedNs: 7, ...running });
      return [...readBytes(probeRing, "a.ring", ring.bytes).dumps![0]!.ops.state];
    };
    expect(states(false)).toEqual([COMPLETED, COMPLETED, STARTED, SCHEDULED]);
    expect(states(true)).toEqual([COMPLETED, COMPLETED, SCHEDULED, STARTED]);
  });

  it("gives one number to sends and receives that ran as a batch, as the flight recorder does", () => {
    const ring = new RingWriter({ rank: 0, records: 16 });
    const group = ring.comm(1n, 1, 3);
    const p2p = { kind: KIND.p2p, group };
    // One by one, then a pair that ended, then a pair that hangs.
    ring.record({ ...p2p, func: 1, c: 2, b: 1, issuedNs: 1, startedNs: 2, endedNs: 10 });
    ring.record({ ...p2p, func: 2, c: 0, b: 2, issuedNs: 3, startedNs: 11, endedNs: 20 });
    ring.record({ ...p2p, func: 1, c: 2, b: 3, issuedNs: 21, startedNs: 25, endedNs: 40 });
    ring.record({ ...p2p, func: 2, c: 0, b: 4, issuedNs: 22, startedNs: 26, endedNs: 41 });
    ring.record({ ...p2p, func: 1, c: 2, b: 5, issuedNs: 42, startedNs: 45 });
    ring.record({ ...p2p, func: 2, c: 0, b: 6, issuedNs: 43, startedNs: 46 });
    ring.record({ ...p2p, func: 1, c: 2, b: 7, issuedNs: 44 });
    const { ops } = readBytes(probeRing, "a.ring", ring.bytes).dumps![0]!;
    expect([...ops.p2pSeq]).toEqual([1, 2, 3, 3, 5, 5, 7]);
  });

  it("takes the plug-in's operators where the shim recorded them too", () => {
    const ring = new RingWriter({ rank: 0, records: 16 });
    const comm = ring.comm(1n, 0, 2);
    const all = { kind: KIND.collective, func: 1, group: comm, b: 1, issuedNs: 1 };
    ring.record({ ...all, flags: FLAG.shim });
    ring.record(all);
    expect(readBytes(probeRing, "a.ring", ring.bytes).dumps![0]!.ops.count).toBe(1);
    const shim = new RingWriter({ rank: 0, records: 16 });
    shim.comm(1n, 0, 2);
    shim.record({ ...all, flags: FLAG.shim });
    expect(readBytes(probeRing, "a.ring", shim.bytes).dumps![0]!.ops.count).toBe(1);
  });

  it("keeps the last lap in order, and leaves out what was being written", () => {
    const ring = new RingWriter({ rank: 0, records: 8 });
    const comm = ring.comm(1n, 0, 2);
    for (let b = 1; b <= 21; b++)
      ring.record({ kind: KIND.collective, func: 1, group: comm, b, issuedNs: b, endedNs: b + 1 });
    const first = ring.bytes.length - 8 * RECORD_BYTES;
    const seqs = (): number[] => {
      const { ops } = readBytes(probeRing, "a.ring", ring.bytes).dumps![0]!;
      return [...ops.seq];
    };
    expect(seqs()).toEqual([14, 15, 16, 17, 18, 19, 20, 21]);
    ring.bytes[first + 6 * RECORD_BYTES + RECORD.stamp]! |= 1;
    expect(seqs()).toEqual([14, 16, 17, 18, 19, 20, 21]);
    const { defects } = readBytes(probeRing, "a.ring", ring.bytes);
    expect(defects[0]!.what).toMatch(/^1 record left out: being written/);
  });

  it("reads what Python did", () => {
    const ring = new RingWriter({ rank: 1, worldSize: 2, writer: "python", records: 16 });
    const loader = ring.name("torch.utils.data@DataLoader.__next__");
    ring.record({ kind: KIND.iteration, a: 7, issuedNs: 0, startedNs: 1, endedNs: 90 * MS });
    ring.record({ kind: KIND.pythonCall, group: loader, a: 555, b: 2, issuedNs: 5, endedNs: 9 });
    ring.record({ kind: KIND.collection, func: 2, a: 321, issuedNs: 10, endedNs: 20 });
    ring.record({ kind: KIND.iteration, a: 8, issuedNs: 100 * MS + 1, endedNs: 160 * MS });
    ring.record({ kind: KIND.memory, a: 4096, b: 1, c: 2, d: 3, issuedNs: 11 });
    ring.record({ kind: KIND.pythonCall, group: loader, a: 555, b: 0, issuedNs: 170 * MS });
    const { probes, series, dumps } = readBytes(probeRing, "a.ring", ring.bytes);
    expect(dumps).toBeUndefined();
    const { calls } = probes![0]!;
    expect([...calls.kind]).toEqual([ITERATION, PYTHON_CALL, COLLECTION, ITERATION, PYTHON_CALL]);
    expect([...calls.detail]).toEqual([7, 2, 2, 8, 0]);
    expect(calls.names[calls.name[1]!]).toBe("torch.utils.data@DataLoader.__next__");
    expect(calls.endNs[4]).toBeNaN();
    expect([...series![0]!.iteration]).toEqual([7, 8]);
    // To the start of the next, which loading in between belongs to; the last by its own mark.
    expect([...series![0]!.durationMs]).toEqual([100, (60 * MS - 1) / MS]);
  });

  it("tells a crash by the words that are left, and a signal that was sent from one that was not", () => {
    const ended = (how: "exit" | "exception" | "signal", code: number, words = "") => {
      const ring = new RingWriter({ rank: 1, writer: "python" });
      ring.end(how, code, 5e9, words);
      return readBytes(probeRing, "a.ring", ring.bytes).failures?.[0];
    };
    const traceback = `Traceback (most recent call last):
  File "/home/me/train.py", line 12, in step
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB`;
    expect(ended("exception", 1, traceback)).toMatchObject({
      rank: 1,
      role: "own",
      cause: "gpu-memory",
      at: "train.py:12 step",
      timeMs: 1_767_225_605_000,
    });
    expect(ended("signal", 15)).toMatchObject({ role: "echo" });
    expect(ended("signal", 11)).toMatchObject({ role: "own" });
    expect(ended("exit", 0)).toBeUndefined();
  });

  it("reads connections, the state being that of the oldest step", () => {
    const ring = new RingWriter({ rank: 0 });
    const comm = ring.comm(5n, 0, 4);
    ring.connection({
      comm,
      channel: 3,
      isSend: true,
      peer: 1,
      begun: 21,
      finished: 18,
      states: [SEND_WAITS_FOR_WIRE, 8, 8],
      changedNs: 44,
    });
    const { connections } = readBytes(probeRing, "a.ring", ring.bytes).probes![0]!;
    expect(connections).toMatchObject({ count: 1 });
    expect([connections.channel[0], connections.peer[0], connections.isSend[0]]).toEqual([3, 1, 1]);
    expect([connections.begun[0], connections.finished[0]]).toEqual([21, 18]);
    expect(connections.state[0]).toBe(SEND_WAITS_FOR_WIRE);
    expect(connections.changedNs[0]).toBe(44);
  });

  it("makes kernels of timed products and collectives", () => {
    const ring = native();
    const api = ring.name("cublasLtMatmul");
    ring.record({
      kind: KIND.matrix,
      group: api,
      dtype: 9,
      a: 4096 + 1024 * 2 ** 32,
      b: 512,
      c: 1,
      issuedNs: 1 * MS,
      startedNs: 1.5 * MS,
      endedNs: 2 * MS,
    });
    const [kernels] = readBytes(probeRing, "a.ring", ring.bytes).kernels!;
    expect(kernels!.coverage).toBe("instrumented");
    const { gpu, matrixOps, shapes, collectives, names, calls } = kernels!;
    expect(gpu.count).toBe(3);
    expect(matrixOps.count).toBe(1);
    expect(shapes[0]).toEqual({
      dims: [
        [4096, 512],
        [512, 1024],
      ],
      types: ["BFloat16", "BFloat16"],
    });
    expect(names[collectives.operation[0]!]).toBe("allreduce");
    expect(names[collectives.dtype[0]!]).toBe("BFloat16");
    const product = gpu.matrixOp.findIndex((op) => op >= 0);
    expect(gpu.startNs[product]! - calls.startNs[gpu.launch[product]!]!).toBe(0.5 * MS);
  });
});

describe("bad rings", () => {
  const what = (bytes: Uint8Array): string[] =>
    readBytes(probeRing, "a.ring", bytes).defects.map((defect) => defect.what);

  it("of another version says which to use", () => {
    const { bytes } = native();
    new DataView(bytes.buffer).setUint32(HEADER.version, 7, true);
    expect(what(bytes)).toEqual([
      "a ring of version 7; this Faultline reads 1: use the version that came with the probe",
    ]);
  });

  it("whose sizes are lies are refused, or read as far as the file goes", () => {
    const lie = (at: number, value: number): Uint8Array => {
      const { bytes } = native();
      new DataView(bytes.buffer).setUint32(at, value, true);
      return bytes;
    };
    expect(what(lie(HEADER.recordBytes, 16))[0]).toMatch(/damaged/);
    expect(what(lie(HEADER.recordCount, 15))[0]).toMatch(/not a power of two/);
    expect(what(lie(HEADER.recordCount, 2 ** 31))[0]).toMatch(/more than 1 GiB/);
    expect(what(lie(HEADER.recordCount, 0))[0]).toMatch(/not a power of two/);
    expect(what(lie(HEADER.recordsOffset, 8))[0]).toMatch(/inside itself/);
    expect(what(lie(HEADER.recordsOffset + 4, 2 ** 31))[0]).toMatch(/more than 1 GiB/);
    expect(what(lie(HEADER.commsOffset, 0xffff_fff8))[0]).toMatch(/0 of 2 communicators/);
    expect(what(lie(HEADER.commCount, 0xffff_ffff))[0]).toMatch(/256 of 4294967295 communicators/);
    expect(what(lie(HEADER.connectionCount, 9_999))[0]).toMatch(/64 of 9999 connections/);
    expect(what(lie(HEADER.recordCount, 1024))[0]).toMatch(/cut off: 16 of its 1024 records/);
  });

  it("with a head or steps that no double counts end in a line, not in a loop", () => {
    const ring = native();
    ring.connection({ comm: 0, isSend: true, peer: 0, begun: 3, finished: 1 });
    const view = new DataView(ring.bytes.buffer);
    const begun = view.getUint32(HEADER.connectionsOffset, true) + CONNECTION.begun;
    view.setBigUint64(begun, 2n ** 54n, true);
    expect(readBytes(probeRing, "a.ring", ring.bytes).probes![0]!.connections.count).toBe(1);
    view.setBigUint64(HEADER.head, 2n ** 53n - 1n, true);
    expect(what(ring.bytes).join()).not.toMatch(/head/);
    view.setBigUint64(HEADER.head, 2n ** 53n, true);
    expect(what(ring.bytes)).toEqual([
      "the header claims a head of 9007199254740992 records: damaged",
    ]);
  });

  it("that are longer than their header states are not kept, and refused", () => {
    const { bytes } = native();
    const rounded = Buffer.concat([bytes, Buffer.alloc(PAGE_BYTES)]);
    expect(what(rounded)).toEqual([]);
    expect(what(Buffer.concat([rounded, Buffer.alloc(1)]))).toEqual([
      `the file is longer than the ${thousands(bytes.length)} bytes that its header states: damaged, not read`,
    ]);
    // A table that no probe makes does not make the file any longer.
    new DataView(bytes.buffer).setUint32(HEADER.connectionCapacity, 2 ** 25, true);
    expect(what(Buffer.concat([bytes, Buffer.alloc(PAGE_BYTES + 1)]))[0]).toMatch(/is longer than/);
    const sink = probeRing.open("a.ring");
    sink.push(bytes);
    // More than any array holds: it can only be counted.
    const chunk = new Uint8Array(2 ** 28);
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 16; i++) sink.push(chunk);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 28);
    expect(sink.end().defects[0]!.what).toMatch(/is longer than the/);
  });

  it("of a terabyte are read no further than their header promises", async () => {
    const folder = mkdtempSync(join(tmpdir(), "faultline-ring-"));
    const path = join(folder, "a.ring");
    const { bytes } = native();
    writeFileSync(path, bytes);
    truncateSync(path, 2 ** 40);
    writeFileSync(`${path}.gz`, gzipSync(Buffer.concat([bytes, Buffer.alloc(2 ** 25)])));
    for (const file of [path, `${path}.gz`]) {
      let have = 0;
      const defects: Defect[] = [];
      const count = async ({ chunks }: SourceFile): Promise<void> => {
        for await (const chunk of chunks) have += chunk.length;
      };
      await openFile(file, count, (defect) => defects.push(defect));
      expect(have).toBeGreaterThan(bytes.length + PAGE_BYTES);
      expect(have).toBeLessThan(2 ** 20);
      expect(defects).toEqual([]);
    }
    rmSync(folder, { recursive: true });
  });

  it("hold no order to a terminal, and their last words keep their lines", () => {
    const ring = new RingWriter({ host: "h\x1b[2J", job: "a\nb", library: "NCCL\u009b1" });
    ring.comm(1n, 0, 2, "tp\x07");
    ring.end("exception", 1, 5 * MS, "Traceback\r\n  \x1b]0;x\nValueError");
    const { probes } = readBytes(probeRing, "a.ring", ring.bytes);
    expect(probes![0]).toMatchObject({
      host: "h\ufffd[2J",
      job: "a\ufffdb",
      library: "NCCL\ufffd1",
      words: "Traceback\n  \ufffd]0;x\nValueError",
      communicators: [{ name: "tp\ufffd" }],
    });
  });

  it("cut anywhere are read without an exception", () => {
    const { bytes } = native();
    for (let end = 0; end <= bytes.length; end += end < 4200 ? 1 : 97)
      expect(() => readBytes(probeRing, "a.ring", bytes.subarray(0, end))).not.toThrow();
    expect(what(bytes.subarray(0, 100))).toEqual(["the ring is cut off in its header"]);
    const cut = bytes.subarray(0, bytes.length - 14 * RECORD_BYTES);
    const reading = readBytes(probeRing, "a.ring", cut);
    expect(reading.defects[0]!.what).toBe("the ring is cut off: 2 of its 16 records are present");
    expect(reading.dumps![0]!.ops.count).toBe(2);
  });

  it("with any byte changed are read without an exception", () => {
    const { bytes } = native();
    for (let at = 8; at < 1700; at += runs(3, 1)) {
      for (const value of [0, 255]) {
        const copy = Uint8Array.from(bytes);
        copy[at] = value;
        expect(() => readBytes(probeRing, "a.ring", copy)).not.toThrow();
      }
    }
  });

  it("give the same reading whatever the chunks are", () => {
    const { bytes } = native();
    const whole = readBytes(probeRing, "a.ring", bytes);
    for (const size of [997, 4096])
      expect(readBytes(probeRing, "a.ring", bytes, size)).toEqual(whole);
  });
});
