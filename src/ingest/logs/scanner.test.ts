import { describe, expect, test } from "vitest";
import type { LogDigest } from "../../model/log-digest.ts";
import { mergeDigests } from "./merge-digests.ts";
import { type FileAbout, LogEngine, type ScanOptions } from "./scanner.ts";

const NONE = (): boolean => false;

/** Scans a text, in chunks of `chunk` bytes. */
function scan(
  text: string | Uint8Array,
  options: Partial<ScanOptions> & FileAbout & { readonly chunk?: number } = {},
): LogDigest {
  const { chunk = 1 << 20, ...rest } = options;
  const engine = new LogEngine({ isTelling: NONE, ...rest });
  engine.begin(0, rest);
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  for (let i = 0; i < bytes.length; i += chunk) engine.push(bytes.subarray(i, i + chunk));
  engine.end();
  return mergeDigests(["job.log"], [engine.digest()]);
}

/** A fresh copy of each line's bytes: the scanner must not keep what it is given. */
const lines = (...list: readonly string[]): string => `${list.join("\n")}\n`;
const texts = (digest: LogDigest): string[] => digest.shapes.map(({ text }) => text);
const stream = (digest: LogDigest, rank: number) =>
  digest.streams.findIndex((one) => one.rank === rank);

describe("shapes", () => {
  test("lines that differ in numbers only have one shape, and its text is the first line's", () => {
    const digest = scan(
      lines(
        "loaded shard 7 of 120 in 3.5 s at 0x7f00aa10",
        "loaded shard 99 of 120 in 1.2e-3 s at 0x7f00bb2099",
        "loaded shard 1,024 of 120 in -3 s at 0xdeadbeef",
        "loaded table 1 of 120 in 3 s at 0x1",
      ),
    );
    expect(digest.shapes.map(({ text, count }) => [text, count])).toEqual([
      ["loaded shard 7 of 120 in 3.5 s at 0x7f00aa10", 3],
      ["loaded table 1 of 120 in 3 s at 0x1", 1],
    ]);
  });

  test("hex ids, UUIDs, padded columns and bars make no shapes of their own", () => {
    expect(
      scan(
        lines(
          "run 3fa94c1be07d done",
          "run 99e1b2c3d4f5a6b7 done",
          "job 550e8400-e29b-41d4-a716-446655440000 ok",
          "job 6ba7b810-9dad-11d1-80b4-00c04fd430c8 ok",
          "iter     9 |==>      |",
          "iter 10000 |=====>   |",
        ),
      ).shapes,
    ).toHaveLength(3);
  });

  test("words of hex letters stay words", () => {
    expect(scan(lines("state is dead", "state is face", "state is fade")).shapes).toHaveLength(3);
  });

  test("a prefix is no part of the shape, its level is the shape's", () => {
    const digest = scan(
      lines(
        "[2026-05-20 08:00:04,298] [INFO] opened file 3",
        "[2026-05-20 08:01:04,298] [INFO] opened file 4",
        "opened file 5",
      ),
    );
    expect(digest.shapes.map(({ text, level, count }) => [text, level, count])).toEqual([
      ["opened file 3", "info", 2],
      ["opened file 5", null, 1],
    ]);
  });

  test("whatever the chunks, the digest is the same", () => {
    const text = lines(
      "[rank0]: Traceback (most recent call last):",
      '[rank0]:   File "/home/me/train.py", line 12, in step',
      "[rank0]:     loss.backward()\r",
      "[rank0]: ValueError: bad thing 3",
      "",
      "10%|#   | 1/10 [00:01<00:09, 1.00s/it]\r20%|##  | 2/10 [00:02<00:08, 1.00s/it]",
      "näive überraschung 3",
    );
    const whole = scan(text);
    for (const chunk of [1, 2, 3, 7, 64]) expect(scan(text, { chunk })).toEqual(whole);
  });
});

describe("streams", () => {
  test("ranks, hosts and writers are told apart, and read from the bytes of later lines", () => {
    const digest = scan(
      lines(
        "[rank0]: hello 1",
        "[rank13]: hello 2",
        "[rank0]: hello 3",
        "node7:4711:4712 [1] NCCL INFO using channel 3",
        "node12:999:1000 [1] NCCL INFO using channel 4",
        "plain 5",
      ),
    );
    expect(digest.streams.map(({ host, rank, lines: n }) => [host, rank, n])).toEqual([
      [null, 0, 2],
      [null, 13, 1],
      ["node7", null, 1],
      ["node12", null, 1],
      [null, null, 1],
    ]);
    expect(digest.shapes).toHaveLength(3);
    expect(digest.cells.count).toBe(5);
    const sorted = [...digest.cells.stream];
    expect(sorted).toEqual([...sorted].sort((a, b) => a - b));
  });

  test("a line that names nobody goes with the writer before it only inside a block", () => {
    const digest = scan(
      lines(
        "[rank6]:[E520 08:00:00.000000001 Watchdog.cpp:7] [Rank 6] thread ended with exception: CUDA error",
        "CUDA kernel errors might be asynchronously reported at some other call.",
        "Exception raised from check at ../c10/Exception.cpp:44 (most recent call first):",
        "frame #0: c10::Error::Error() + 0x57 (0x7f2c58b63d87 in /opt/libc10.so)",
        "[rank2]: all is well",
        "all is well here, too",
      ),
    );
    const six = stream(digest, 6);
    expect(digest.streams[six]!.lines).toBe(4);
    expect(digest.streams.find(({ rank }) => rank === null)!.lines).toBe(1);
    expect(digest.blocks).toMatchObject([
      { kind: "native", stream: six, line: 1, firstLine: 1, lastLine: 4 },
    ]);
    expect(digest.blocks[0]!.text).toMatch(/CUDA error$/);
  });

  test("without a prefix all lines are the file's", () => {
    const digest = scan(lines("a 1", "b 2"));
    expect(digest.streams).toMatchObject([
      { file: 0, host: null, rank: null, writer: "", lines: 2 },
    ]);
  });
});

describe("blocks", () => {
  test("interleaved tracebacks are put together by writer", () => {
    const digest = scan(
      lines(
        "[rank0]: Traceback (most recent call last):",
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "/home/me/train.py", line 40, in main',
        '[rank0]:   File "/home/me/train.py", line 40, in main',
        "[rank1]:     run(args)",
        '[rank0]:   File "/opt/venv/lib/python3.11/site-packages/torch/nn.py", line 9, in call',
        '[rank1]:   File "/home/me/data.py", line 7, in fetch',
        "[rank0]:     return f(error)",
        "[rank1]:     raise KeyError(k)",
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        "[rank1]: KeyError: 'x'",
      ),
    );
    expect(digest.blocks).toEqual([
      {
        kind: "traceback",
        stream: stream(digest, 0),
        firstLine: 1,
        lastLine: 10,
        timeMs: NaN,
        text: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        line: 10,
        at: "train.py:40 main",
        inner: "framework",
        rows: [
          { line: 1, text: "Traceback (most recent call last):" },
          { line: 4, text: '  File "/home/me/train.py", line 40, in main' },
          {
            line: 6,
            text: '  File "/opt/venv/lib/python3.11/site-packages/torch/nn.py", line 9, in call',
          },
          { line: 8, text: "    return f(error)" },
          {
            line: 10,
            text: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
          },
        ],
      },
      {
        kind: "traceback",
        stream: stream(digest, 1),
        firstLine: 2,
        lastLine: 11,
        timeMs: NaN,
        text: "KeyError: 'x'",
        line: 11,
        at: "data.py:7 fetch",
        inner: "user",
        rows: [
          { line: 2, text: "Traceback (most recent call last):" },
          { line: 3, text: '  File "/home/me/train.py", line 40, in main' },
          { line: 5, text: "    run(args)" },
          { line: 7, text: '  File "/home/me/data.py", line 7, in fetch' },
          { line: 9, text: "    raise KeyError(k)" },
          { line: 11, text: "KeyError: 'x'" },
        ],
      },
    ]);
    const part = (text: string) => digest.shapes.find((shape) => shape.text.startsWith(text))!;
    expect(part("File").isPart).toBe(true);
    expect(part("raise KeyError")).toMatchObject({ isPart: true, isTelling: false });
    expect(part("KeyError")).toMatchObject({ isPart: false, isTelling: true });
    expect(digest.kept.map(({ line }) => line)).toEqual([10, 11]);
  });

  test("a chain is one block about its start, another writer's exception a block of its own", () => {
    const digest = scan(
      lines(
        "Traceback (most recent call last):",
        "Traceback (most recent call last):",
        '  File "/w/a.py", line 3, in load',
        '  File "/w/a.py", line 3, in load',
        "    open(path)",
        "OSError: [Errno 5] Input/output error",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        '  File "/w/a.py", line 9, in main',
        "RuntimeError: no checkpoint",
        "RuntimeError: no checkpoint",
        "done 1",
      ),
    );
    expect(digest.blocks.map(({ text, at, lastLine }) => [text, at, lastLine])).toEqual([
      ["OSError: [Errno 5] Input/output error", "a.py:3 load", 12],
      ["RuntimeError: no checkpoint", "a.py:3 load", 13],
    ]);
  });

  test("a kernel's block is about the line before its stack, and code around it is none of it", () => {
    const digest = scan(
      lines(
        "[Wed May 20 08:00:00 2026] INFO: task python:77 blocked for more than 120 seconds.",
        "[Wed May 20 08:00:00 2026] Call Trace:",
        "[Wed May 20 08:00:00 2026]  __schedule+0x2d1/0x860",
        "[Wed May 20 08:00:00 2026]  ? wake_up_q+0x70/0x70 [fsmod]",
        "[Wed May 20 08:02:00 2026] INFO: task python:78 blocked for more than 120 seconds.",
        "[Wed May 20 08:02:00 2026] Call Trace:",
        "[Wed May 20 08:02:00 2026]  __schedule+0x2d1/0x860",
      ),
    );
    expect(digest.blocks).toMatchObject([
      { kind: "kernel", firstLine: 1, lastLine: 4, line: 1, timeMs: Date.UTC(2026, 4, 20, 8) },
      { kind: "kernel", firstLine: 5, lastLine: 7 },
    ]);
    expect(digest.kept.map(({ line }) => line)).toEqual([1, 5]);
  });

  test("faulthandler's innermost frame comes first", () => {
    const digest = scan(
      lines(
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x00007f1 (most recent call first):",
        '  File "/usr/lib/python3.11/threading.py", line 1 in wait',
        '  File "/w/loop.py", line 5 in inner',
        '  File "/w/main.py", line 6 in outer',
      ),
    );
    expect(digest.blocks).toMatchObject([
      { text: "Fatal Python error: Segmentation fault", at: "loop.py:5 inner", lastLine: 6 },
    ]);
  });
});

describe("what is wrong with a log", () => {
  test("colours and Windows' line ends leave the same shapes", () => {
    const plain = scan(lines("[rank1]: disk 3 failed", "[rank2]: disk 4 failed"));
    const coloured = scan(
      "\u001b[31m[rank1]:\u001b[0m disk \u001b[1m3\u001b[0m failed\r\n[rank2]: disk 4 failed\r\n",
    );
    expect(coloured.shapes).toEqual(plain.shapes);
    expect(coloured.streams).toEqual(plain.streams);
    expect(coloured.kept).toEqual(plain.kept);
  });

  test("a bar's states count where they tell; a message glued to a bar is read", () => {
    const bar = (n: number): string => ` ${n}%|#   | ${n}/100 [00:0${n}<01:00, 1.00s/it]`;
    const digest = scan(
      `${bar(1)}\r${bar(2)}\rfatal: disk gone\r${bar(3)}\n` +
        `${bar(4)}[2026-05-20 08:00:00,000] [INFO] [a.py:1:f] saved 1\n` +
        "saving\rsaving more\rsaved all\n",
    );
    expect(digest.kept.map(({ line, text }) => [line, text])).toEqual([[1, "fatal: disk gone"]]);
    expect([...digest.iterations[0]!.iteration]).toEqual([1, 2, 3, 4]);
    expect(texts(digest)).toContain("saved all");
    expect(texts(digest)).not.toContain("saving more");
    expect(digest.shapes.find(({ text }) => text.endsWith("saved 1"))!.level).toBe("info");
    expect(digest.files[0]!.lines).toBe(3);
  });

  test("a line of megabytes is cut and said so", () => {
    for (const chunk of [1000, 1 << 20]) {
      const digest = scan(`start ${"x y ".repeat(700_000)}\nnext 1\n`, { chunk });
      expect(digest.files[0]).toMatchObject({ lines: 2 });
      expect(digest.files[0]!.defects[0]).toMatch(/^1 line longer than 8 KB/);
      expect(digest.shapes[0]!.text).toHaveLength(2000);
      expect(digest.shapes[1]).toMatchObject({ text: "next 1", line: 2 });
    }
  });

  test("invalid UTF-8 and NULs are survived", () => {
    const digest = scan(
      Buffer.concat([
        Buffer.from("error \xff\xfe here\n", "latin1"),
        Buffer.alloc(30_000),
        Buffer.from("error after the hole\nerror \0inside\n"),
      ]),
    );
    expect(digest.files[0]!.lines).toBe(3);
    expect(digest.files[0]!.defects).toEqual(["NUL bytes in 2 places"]);
    expect(digest.kept.map(({ text }) => text)).toEqual([
      "error \ufffd\ufffd here",
      "error after the hole",
      "error inside",
    ]);
  });

  test("an empty log and one without a last line end", () => {
    expect(scan("")).toMatchObject({ streams: [], shapes: [], kept: [], files: [{ lines: 0 }] });
    expect(scan("one 1\ntwo 2").files[0]!.lines).toBe(2);
  });
});

describe("times", () => {
  const first = (text: string): number => scan(lines(text)).streams[0]!.firstMs;

  test("of all kinds", () => {
    const at = Date.UTC(2026, 4, 20, 8, 0, 4);
    expect(first("2026-05-20 08:00:04,298 INFO x")).toBe(at + 298);
    expect(first("2026-05-20T10:00:04.298+02:00 INFO x")).toBe(at + 298);
    expect(first("2026-05-20T01:00:04-0700 INFO x")).toBe(at);
    expect(first("[Wed May 20 08:00:04 2026] x")).toBe(at);
    expect(first("05/20/2026 08:00:04 - INFO - x")).toBe(at);
    expect(first("[   12.345678] x")).toBe(12_345);
    expect(first("hello")).toBeNaN();
  });

  test("without a year they are near a full one, also over New Year", () => {
    const digest = scan(
      lines(
        "I1231 23:59:58.000000 77 a.cpp:1] x 1",
        "I0101 00:00:01.000000 77 a.cpp:1] x 2",
        "2027-01-01 00:00:02,000 INFO y",
      ),
    );
    expect([digest.cells.firstMs[0], digest.cells.lastMs[0]]).toEqual([
      Date.UTC(2026, 11, 31, 23, 59, 58),
      Date.UTC(2027, 0, 1, 0, 0, 1),
    ]);
  });

  test("a line without a time has that of its writer's last", () => {
    const digest = scan(lines("2026-05-20 08:00:04 INFO start", "disk failed"));
    expect(digest.kept).toMatchObject([{ line: 2, timeMs: Date.UTC(2026, 4, 20, 8, 0, 4) }]);
  });

  test("the longest silences of a stream that writes often", () => {
    const at = (s: number): string => new Date(Date.UTC(2026, 4, 20, 8) + s * 1000).toISOString();
    const list: string[] = [];
    for (let s = 0; s < 100; s++) list.push(`${at(s < 50 ? s : s + 600)} INFO step ${s}`);
    const { gaps } = scan(lines(...list));
    expect(gaps).toEqual([{ stream: 0, fromMs: Date.parse(at(49)), toMs: Date.parse(at(650)) }]);
    const ended = scan(
      lines(...list.map((line) => `[rank0]: ${line}`), `[rank1]: ${at(900)} INFO x`),
    );
    expect(ended.gaps.at(-1)).toMatchObject({ stream: 0, toMs: NaN });
  });
});

describe("iterations", () => {
  test("reports and what was written between them", () => {
    const list: string[] = ["starting"];
    for (let i = 1; i <= 3; i++)
      list.push(
        ` iteration ${String(i).padStart(8)}/    1000 | elapsed time per iteration (ms): 4${i} | lm loss: 1.${i}E+00 | number of nan iterations:   0 |`,
        `saving shard ${i}`,
        `saving shard ${i + 1}`,
        ...(i === 2 ? ["slow disk"] : []),
      );
    const digest = scan(lines(...list));
    const [one] = digest.iterations;
    expect([...one!.iteration]).toEqual([1, 2, 3]);
    expect([...one!.line]).toEqual([2, 5, 9]);
    expect(one!.sequence[0]).toBe(one!.sequence[2]);
    expect(one!.sequence[0]).not.toBe(one!.sequence[1]);
    expect(digest.sequences.map(({ length }) => length)).toEqual([2, 3]);
    expect(digest.shapes.find(({ text }) => text.startsWith("iteration"))!.isTelling).toBe(false);
  });

  test.each([
    [
      "[2026-05-20 08:00:04,298] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1]",
      10,
    ],
    ["step: 12  loss: 4.5  memory: 3GiB", 12],
    ["epoch 3 step 120 loss 0.3", 120],
    ["{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.02}", 0.02],
    [" 14%|#4   | 380/2724 [14:02:33<99:00:00, 131.96s/it]", 380],
    ["Training epoch 0, iteration 9/99 | lr: 1 | global_step: 9 | train_step_timing in s: 3", 9],
  ])("%s", (text, iteration) => {
    expect([...scan(lines(text)).iterations[0]!.iteration]).toEqual([iteration]);
  });

  test("evaluations and other bars count nothing", () => {
    const digest = scan(
      lines(
        "Loading checkpoint shards: 50%|##  | 1/2 [00:01<00:01, 1.00s/it]",
        "step 250: train loss 2.0, val loss 2.1",
      ),
    );
    expect(digest.iterations).toEqual([]);
  });
});

describe("caps", () => {
  test("of a shape in a stream the first 24 and the last 8 are kept", () => {
    const list = Array.from({ length: 100 }, (_, i) => `disk ${i} failed`);
    const { kept } = scan(lines(...list));
    expect(kept.map(({ line }) => line)).toEqual([
      ...Array.from({ length: 24 }, (_, i) => i + 1),
      ...Array.from({ length: 8 }, (_, i) => i + 93),
    ]);
    expect(kept.at(-1)!.text).toBe("disk 99 failed");
  });

  test("where too many would be kept, a rare line stays and the digest says so", () => {
    const list = Array.from({ length: 400 }, (_, i) => `[rank${i % 20}]: disk ${i} failed`);
    list[211] = "[rank7]: the one strange error";
    const digest = scan(lines(...list), { limits: { kept: 100 } });
    expect(digest.kept.length).toBeLessThanOrEqual(100);
    expect(digest.kept.some(({ text }) => text.includes("strange"))).toBe(true);
    expect(digest.missing.join()).toMatch(/fewer repetitions are kept/);
  });

  test("too many forms: lines go with lines that start alike, telling ones are still kept", () => {
    const word = (i: number): string =>
      String(i).replace(/\d/g, (digit) => "qrstuvwxyz"[Number(digit)]!);
    const list = Array.from({ length: 500 }, (_, i) => `a b c d e f ${word(i)} g`);
    list.push("then the disk failed");
    const digest = scan(lines(...list), { limits: { forms: 50 } });
    expect(digest.shapes.length).toBeLessThan(60);
    expect(digest.shapes.reduce((sum, { count }) => sum + count, 0)).toBe(501);
    expect(digest.kept).toMatchObject([{ line: 501, text: "then the disk failed" }]);
    expect(digest.missing.join()).toMatch(/451 lines came after too many/);
  });

  test("the library's word makes a line telling", () => {
    const digest = scan(lines("all quiet 3", "all loud 4"), {
      isTelling: (text) => text.includes("loud"),
    });
    expect(digest.kept.map(({ text }) => text)).toEqual(["all loud 4"]);
  });
});

describe("headers that the file's own lines show", () => {
  const WORDS = ["opened the door", "closed it", "painted all walls", "swept", "mopped"];
  const many = (make: (i: number) => string): string =>
    lines(...Array.from({ length: 100 }, (_, i) => make(i)));

  test("a bracket that somebody made up names ranks", () => {
    const digest = scan(many((i) => `[worker-${i % 4}|rank=${i % 8}] ${WORDS[i % 5]}`));
    expect(texts(digest).sort()).toEqual([...WORDS].sort());
    expect(digest.streams.map(({ rank }) => rank)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test("columns between bars have a time, a level and hosts", () => {
    const digest = scan(
      many((i) => `2031/05/06-07:08:09.123 | INFO | gpu-${i % 3} | ${WORDS[i % 5]}`),
    );
    expect(texts(digest).sort()).toEqual([...WORDS].sort());
    expect(digest.streams.map(({ host }) => host)).toEqual(["gpu-0", "gpu-1", "gpu-2"]);
    expect(digest.streams[0]!.firstMs).toBe(Date.UTC(2031, 4, 6, 7, 8, 9, 123));
  });

  test("epochs in brackets are no writers", () => {
    const digest = scan(many((i) => `[epoch ${Math.floor(i / 10)}] ${WORDS[i % 5]}`));
    expect(digest.streams).toHaveLength(1);
  });

  test("they do not depend on the chunks", () => {
    const text = many((i) => `<trainer ${i % 4}> ${WORDS[i % 5]}`);
    const whole = scan(text);
    expect(whole.streams).toHaveLength(4);
    expect(scan(text, { chunk: 7 })).toEqual(whole);
  });
});

describe("encodings", () => {
  const LINES = lines("2031-05-06 07:08:09 ERROR disk ä failed", "2031-05-06 07:08:10 INFO ok");

  test("a byte order mark is no part of the first line", () => {
    const plain = scan(LINES);
    const { files, ...marked } = scan(`\ufeff${LINES}`, { chunk: 2 });
    expect({ ...marked, files: plain.files }).toEqual(plain);
    expect(files[0]!.lines).toBe(2);
  });

  test.each(["LE", "BE"])("UTF-16%s is read like UTF-8", (order) => {
    const wide = Buffer.from(`\ufeff${LINES}`, "utf16le");
    if (order === "BE") wide.swap16();
    expect(scan(wide, { chunk: 3 })).toEqual(scan(LINES));
  });
});

describe("years", () => {
  const TIMES = lines("Dec 30 08:00:00 node1 app: a", "Jan  2 09:00:00 node1 app: b");

  test("a file without years was written before it was last changed", () => {
    const of = (latestMs: number) => scan(TIMES, { latestMs }).streams[0]!;
    const inJanuary = of(Date.UTC(2026, 0, 2, 9, 0, 1));
    expect(inJanuary.firstMs).toBe(Date.UTC(2025, 11, 30, 8));
    expect(inJanuary.lastMs).toBe(Date.UTC(2026, 0, 2, 9));
    // Copied months later: still the last New Year before that.
    expect(of(Date.UTC(2026, 10, 15)).firstMs).toBe(Date.UTC(2025, 11, 30, 8));
  });

  test("a zone may put a line up to a day behind the change", () => {
    const text = "I0520 08:00:00.000000 77 a.cpp:1] x\n";
    const of = (latestMs: number) => scan(text, { latestMs }).streams[0]!.firstMs;
    expect(of(Date.UTC(2026, 4, 19, 9))).toBe(Date.UTC(2026, 4, 20, 8));
    expect(of(Date.UTC(2026, 4, 18, 9))).toBe(Date.UTC(2025, 4, 20, 8));
  });

  test("29 February is in a leap year", () => {
    const { firstMs } = scan("Feb 29 08:00:00 node1 app: a\n", {
      latestMs: Date.UTC(2026, 5, 1),
    }).streams[0]!;
    expect(firstMs).toBe(Date.UTC(2024, 1, 29, 8));
  });
});

describe("text that is new in every line", () => {
  const word = (i: number): string =>
    String(i).replace(/\d/g, (digit) => "qrstuvwxyz"[Number(digit)]!);
  const DUMP = Array.from(
    { length: 9000 },
    (_, i) => `[rank${i % 3}]: 2031-05-06 07:08:09 INFO ${word(i)} ${word(i * 7)} said`,
  );

  test("its lines are put together, but whose they are, when, and what tells is still known", () => {
    const list = [...DUMP];
    list[8000] = "[rank1]: 2031-05-06 07:30:00 INFO qqq disk failed";
    list[8999] = "[rank2]: 2031-05-06 08:00:00 INFO the very end of it";
    const digest = scan(lines(...list));
    expect(digest.shapes.length).toBeLessThan(5000);
    expect(digest.missing.join()).toMatch(/lines came after too many different/);
    expect(digest.streams.map(({ rank, lines: of }) => [rank, of])).toEqual([
      [0, 3000],
      [1, 3001],
      [2, 2999],
    ]);
    expect(digest.kept).toMatchObject([{ line: 8001, text: "qqq disk failed" }]);
    expect(digest.streams[2]!.lastMs).toBe(Date.UTC(2031, 4, 6, 8));
  });

  test("lines that repeat keep their shape", () => {
    const list = DUMP.flatMap((line, i) => (i % 4 === 0 ? [line, `step done ${i}`] : [line]));
    const digest = scan(lines(...list));
    expect(digest.shapes.find(({ text }) => text === "step done 0")!.count).toBe(2250);
  });
});
