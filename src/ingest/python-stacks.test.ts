import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pythonStacks } from "./python-stacks.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";

// From our own recording hang3, rank 3: asleep in the forward pass.
const HANG3 = `Thread 0x00007f3a8515e6c0 (most recent call first):
  <no Python frame>

Current thread 0x00007f3e042ae140 (most recent call first):
  File "/srv/job/train.py", line 159 in train_step
  File "/srv/job/train.py", line 197 in <module>
`;
const LATER = HANG3.replace("line 159 in train_step", "line 164 in train_step");

const PY_SPY = `Process 812: python train.py --tp 2
Python v3.12.3 (/usr/bin/python3.12)

Thread 812 (active+gil): "MainThread"
    forward (model/layer.py:77)
        Arguments:
            x: <Tensor at 0x7f>
    step::inner(int) (libtorch_cuda.so)
    <module> (train.py:20)
Thread 0x7F10AA (idle): "Thread-1 (loader)"
    wait (threading.py:327)

Process 813: python train.py --tp 2
Python v3.12.3 (/usr/bin/python3.12)

Thread 813 (idle): "MainThread"
    synchronize (torch/cuda/streams.py:108)
`;

const JSON_DUMP = JSON.stringify([
  {
    pid: 812,
    thread_id: 1,
    thread_name: "MainThread",
    os_thread_id: 812,
    active: true,
    owns_gil: true,
    frames: [
      {
        name: "forward",
        filename: "/srv/model/layer.py",
        short_filename: "layer.py",
        line: 77,
        locals: null,
      },
      {
        name: "<module>",
        filename: "/srv/train.py",
        short_filename: "train.py",
        line: 20,
        locals: null,
      },
    ],
  },
  {
    pid: 812,
    thread_id: 2,
    thread_name: null,
    os_thread_id: 900,
    active: false,
    owns_gil: false,
    frames: [],
  },
]);

describe("faulthandler text", () => {
  it("gives the current thread as the main one, innermost frame first", () => {
    const reading = readBytes(pythonStacks, "runs/stacks.rank3.txt", HANG3);
    expect(reading).toMatchObject({ rank: 3, records: 2, defects: [] });
    const [other, main] = reading.stacks?.[0]?.threads ?? [];
    expect(other).toMatchObject({ isMain: false, frames: [], line: 1 });
    expect(main).toMatchObject({
      name: "0x00007f3e042ae140",
      isMain: true,
      line: 4,
      frames: [
        { func: "train_step", file: "/srv/job/train.py", line: 159 },
        { func: "<module>", file: "/srv/job/train.py", line: 197 },
      ],
    });
  });

  it("keeps the last of several dumps, and the one before where the last is cut", () => {
    const two = readBytes(pythonStacks, "stacks.txt", HANG3 + LATER);
    expect(two.stacks).toHaveLength(1);
    expect(two.stacks?.[0]?.threads[1]?.frames[0]?.line).toBe(164);
    for (const cut of [20, 60, 110, LATER.length - 30, LATER.length - 3]) {
      const reading = readBytes(pythonStacks, "stacks.txt", HANG3 + LATER.slice(0, cut));
      expect(reading.stacks?.[0]?.threads[1]?.frames[0]?.line).toBe(159);
    }
  });

  it("takes the oldest thread, which is listed last, for the main one where none is current", () => {
    const text = `Timeout (0:00:05)!\n${HANG3.replace("Current thread", "Thread")}`;
    expect(
      readBytes(pythonStacks, "s.txt", text).stacks?.[0]?.threads.map((t) => t.isMain),
    ).toEqual([false, true]);
  });

  it("reads thread names (Python 3.14) and reports a fatal error as a failure", () => {
    const text = `Fatal Python error: Segmentation fault\n\nThread 0x1 [MainThread] (most recent call first):\n  File "a.py", line 3 in f\n  ...\n`;
    const reading = readBytes(pythonStacks, "stacks_rank7.txt", text);
    expect(reading.stacks?.[0]?.threads[0]).toMatchObject({ name: "MainThread", isMain: true });
    expect(reading.failures).toMatchObject([
      { rank: 7, role: "own", signature: "python.fatal", line: 1 },
    ]);
  });
});

describe("py-spy", () => {
  it("gives one dump a process, with native frames and without locals", () => {
    const reading = readBytes(pythonStacks, "stacks-12.txt", PY_SPY);
    expect(reading.stacks?.map((s) => s.pid)).toEqual([812, 813]);
    expect(reading.rank).toBeNull();
    const main = reading.stacks?.[0]?.threads[0];
    expect(main).toMatchObject({ name: "MainThread", isMain: true, status: "active+gil", line: 4 });
    expect(main?.frames.map((f) => `${f.func}|${f.file}|${f.line}`)).toEqual([
      "forward|model/layer.py|77",
      "step::inner(int)|libtorch_cuda.so|0",
      "<module>|train.py|20",
    ]);
    expect(reading.stacks?.[0]?.threads[1]).toMatchObject({
      name: "Thread-1 (loader)",
      status: "idle",
    });
  });

  it("does not take a pid in the file's name for a rank", () => {
    const one = PY_SPY.slice(0, PY_SPY.indexOf("\nProcess 813"));
    expect(readBytes(pythonStacks, "pyspy-812.txt", one).rank).toBeNull();
    expect(readBytes(pythonStacks, "stack_5.txt", one).rank).toBe(5);
  });

  it("splits stacks that somebody collected without the process lines", () => {
    const text = `two processes:\n\nThread 10 (active): "MainThread"\n    a (x.py:1)\nThread 11 (active): "MainThread"\n    b (y.py:2)\n`;
    expect(readBytes(pythonStacks, "x.txt", text).stacks).toHaveLength(2);
  });

  it("keeps the later of two dumps of one process", () => {
    const reading = readBytes(
      pythonStacks,
      "x.txt",
      PY_SPY + PY_SPY.replace("layer.py:77", "layer.py:78"),
    );
    expect(reading.stacks?.map((s) => [s.pid, s.threads[0]?.frames[0]?.line])).toEqual([
      [812, 78],
      [813, 108],
    ]);
  });

  it("reads the JSON form, several documents in one file, and what is whole of a cut one", () => {
    const reading = readBytes(pythonStacks, "d.json", JSON_DUMP);
    expect(reading.stacks?.[0]).toMatchObject({ pid: 812 });
    expect(reading.stacks?.[0]?.threads[0]).toMatchObject({
      isMain: true,
      status: "active+gil",
      frames: [{ func: "forward", file: "/srv/model/layer.py", line: 77 }, { func: "<module>" }],
    });
    const both = readBytes(
      pythonStacks,
      "d.json",
      `${JSON_DUMP}\n${JSON_DUMP.replaceAll("812", "813")}`,
    );
    expect(both.stacks?.map((s) => s.pid)).toEqual([812, 813]);
    const cut = readBytes(pythonStacks, "d.json", JSON_DUMP.slice(0, -40));
    expect(cut.stacks?.[0]?.threads).toHaveLength(1);
    expect(cut.defects).not.toHaveLength(0);
  });
});

describe("as a reader", () => {
  it.each([HANG3 + LATER, PY_SPY, `\n\n${JSON_DUMP}`])(
    "reads the same at every chunk size (%#)",
    (text) => {
      const [first, ...others] = readAtAllSizes(pythonStacks, "f", text);
      for (const other of others) expect(other).toEqual(first);
    },
  );

  it.each([HANG3 + LATER, PY_SPY, JSON_DUMP])("survives a cut at every byte (%#)", (text) => {
    for (const reading of readCutEverywhere(pythonStacks, "f", text))
      expect(reading.format).toBe("python-stacks");
  });

  it("survives random bytes and mutated lines", () => {
    const lines = (HANG3 + PY_SPY + JSON_DUMP).split("\n");
    const mutated = fc.array(
      fc.oneof(fc.constantFrom(...lines), fc.string(), fc.constantFrom("[", "{", "  ")),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (b) => void readBytes(pythonStacks, "f", b)),
    );
    fc.assert(fc.property(mutated, (l) => void readBytes(pythonStacks, "f", l.join("\n"))));
  });

  it("recognises its formats and nothing else", () => {
    for (const text of [HANG3, PY_SPY, JSON_DUMP, `Timeout (0:00:05)!\n${HANG3}`]) {
      expect(sniffs(pythonStacks, text)).toBe(true);
    }
    const log = `2026-11-15 00:41:36.624 [INFO] [rank3] initializing torch distributed, world size 8\n${HANG3}`;
    for (const text of [
      "",
      "Thread safety is hard.\n",
      "[1, 2, 3]",
      '{"frames": []}',
      log,
      "import threading\n",
    ]) {
      expect(sniffs(pythonStacks, text)).toBe(false);
    }
  });
});
