import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Reading } from "../model/reading.ts";
import { rankLog } from "./rank-log.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";
import { processorMs } from "../../test/support/processor-time.ts";
import { runs } from "../../test/support/cases.ts";

// Excerpts of our own recordings; rank 2 of hang3 waits for rank 3, which sleeps.
const HANG3_RANK2 = `2026-11-15 00:41:37.409 [INFO] [rank2] initializing torch distributed, world size 8
[I1115 00:41:37.502628044 ProcessGroupNCCL.cpp:988] [PG ID 0 PG GUID 0 Rank 2] ProcessGroupNCCL initialization options: size: 8, global rank: 2, TIMEOUT(ms): 12000, USE_HIGH_PRIORITY_STREAM: 0, SPLIT_FROM: 0, SPLIT_COLOR: -2, PG Name: 0
[I1115 00:41:37.502760581 ProcessGroupNCCL.cpp:1068] [PG ID 0 PG GUID 0(default_pg) Rank 2] Using non-blocking mode: 0
[rank2]:[I1115 00:41:38.634445254 ProcessGroupNCCL.cpp:988] [PG ID 1 PG GUID 2 Rank 0] ProcessGroupNCCL initialization options: size: 2, global rank: 2, TIMEOUT(ms): 12000, USE_HIGH_PRIORITY_STREAM: 0, SPLIT_FROM: 1, SPLIT_COLOR: 1121016176, PG Name: 2
[rank2]:[I1115 00:41:38.634541050 ProcessGroupNCCL.cpp:1068] [PG ID 1 PG GUID 2(TENSOR_PARALLEL_1) Rank 0] Using non-blocking mode: 0
2026-11-15 00:41:44.044 [INFO] [rank2] training starts
[rank2]:[E1115 00:42:01.742958283 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=123, OpType=SEND, NumelIn=524288, NumelOut=524288, Timeout(ms)=12000) ran for 12007 milliseconds before timing out.
[rank2]:[E1115 00:42:01.743135592 ProcessGroupNCCL.cpp:2303] [PG ID 3 PG GUID 11(PIPELINE_PARALLEL_2) Rank 0]  failure detected by watchdog at work sequence id: 123 PG status: last enqueued work: 128, last completed work: 122
[rank2]:[E1115 00:42:01.743430086 ProcessGroupNCCL.cpp:733] Stack trace of the failed collective: 
#0 isend from /opt/torch/.venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py:2552
[rank2]:[E1115 00:42:01.795834853 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=489, OpType=ALLREDUCE, NumelIn=524288, NumelOut=524288, Timeout(ms)=12000) ran for 12062 milliseconds before timing out.
[rank2]:[E1115 00:42:01.795913457 ProcessGroupNCCL.cpp:2303] [PG ID 1 PG GUID 2(TENSOR_PARALLEL_1) Rank 0]  failure detected by watchdog at work sequence id: 489 PG status: last enqueued work: 512, last completed work: 488
[rank2]:[E1115 00:42:02.507635632 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a collective timeout from this local rank and we will try our best to dump the debug info. Last enqueued NCCL work: 1, last completed NCCL work: 1.This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks.
[rank2]: Traceback (most recent call last):
[rank2]:   File "/srv/job/train.py", line 197, in <module>
[rank2]:     with torch.profiler.record_function(f"ProfilerStep#{step}"): loss = train_step()
[rank2]:                                                                         ^^^^^^^^^^^^
[rank2]:   File "/srv/job/train.py", line 181, in train_step
[rank2]:     torch.cuda.current_stream().synchronize()
[rank2]:   File "/opt/torch/.venv/lib/python3.12/site-packages/torch/cuda/streams.py", line 108, in synchronize
[rank2]:     super().synchronize()
[rank2]: torch.AcceleratorError: CUDA error: an illegal memory access was encountered
[rank2]: Search for \`cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.

terminate called after throwing an instance of 'c10::AcceleratorError'
  what():  CUDA error: an illegal memory access was encountered
frame #1: <unknown function> + 0xc114 (0x7fe19b8d4114 in /opt/torch/.venv/lib/python3.12/site-packages/torch/lib/libc10_cuda.so)
`;
const OOM2_RANK2 = `2026-11-15 00:47:02.603 [INFO] [rank2] training starts
[rank2]: Traceback (most recent call last):
[rank2]:   File "/srv/job/train.py", line 197, in <module>
[rank2]:     with torch.profiler.record_function(f"ProfilerStep#{step}"): loss = train_step()
[rank2]:   File "/srv/job/train.py", line 177, in train_step
[rank2]:     while True: keep.append(torch.empty(4 << 30, device="cuda", dtype=torch.uint8))
[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 212.44 MiB is free.
`;
const OOM2_RANK0 = `2026-11-15 00:47:02.603 [INFO] [rank0] training starts
[rank0]:[E1115 00:47:07.943639432 ProcessGroupNCCL.cpp:1849] [PG ID 0 PG GUID 0(default_pg) Rank 0] Observed flight recorder dump signal from another rank via TCPStore.
[rank0]:[E1115 00:47:07.943789134 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from  rank 3 and we will try our best to dump the debug info. Last enqueued NCCL work: 1, last completed NCCL work: 1.This is most likely
[rank0]:[E1115 00:47:07.964312285 ProcessGroupNCCL.cpp:612] [Rank 0] Collective WorkNCCL(SeqNum=193, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=12000) raised the following async exception: NCCL error: remote process exited or there was a network error, NCCL version 2.28.9
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
Last error:
socketProgress: Connection closed by remote peer localhost<43946>

[rank0]:[E1115 00:47:07.965666712 ProcessGroupNCCL.cpp:2303] [PG ID 2 PG GUID 5(DATA_PARALLEL_0) Rank 0]  failure detected by watchdog at work sequence id: 193 PG status: last enqueued work: 208, last completed work: 192
[rank0]:[F1115 00:47:31.964108370 ProcessGroupNCCL.cpp:1653] [PG ID 0 PG GUID 0(default_pg) Rank 0] [PG ID 0 PG GUID 0(default_pg) Rank 0] Terminating the process after attempting to dump debug info, due to collective timeout or exception.
`;

const read = (text: string, file = "log.txt"): Reading => readBytes(rankLog, file, text);
const brief = (reading: Reading): string[] =>
  (reading.failures ?? []).map((f) => `${f.line} ${f.rank} ${f.role} ${f.cause} ${f.signature}`);

describe("a rank that waits (recording hang3)", () => {
  const reading = read(HANG3_RANK2);

  it("joins the two lines of each timeout and takes the group's rank from the second", () => {
    expect(reading.rank).toBe(2);
    expect(reading.watchdog?.slice(0, 2)).toEqual([
      {
        rank: 2,
        file: "log.txt",
        line: 7,
        timeMs: Date.UTC(2026, 10, 15, 0, 42, 1, 742),
        group: "11",
        desc: "PIPELINE_PARALLEL_2",
        groupRank: 0,
        seq: 123,
        op: "SEND",
        numelIn: 524288,
        numelOut: 524288,
        enqueued: 128,
        completed: 122,
      },
      expect.objectContaining({
        group: "2",
        seq: 489,
        op: "ALLREDUCE",
        enqueued: 512,
        completed: 488,
      }),
    ]);
    // The dump signal tells the frontier in the default group, also of ranks that did not time out.
    expect(reading.watchdog?.[2]).toMatchObject({
      group: "0",
      groupRank: 2,
      seq: -1,
      enqueued: 1,
      completed: 1,
    });
  });

  it("takes the CUDA error after the timeout for its aftermath, told once", () => {
    expect(brief(reading)).toEqual([
      "7 2 echo unknown torch.watchdog.timeout",
      "13 2 echo unknown torch.watchdog.last-work",
      "22 2 echo gpu-error cuda.illegal-access",
    ]);
    expect(reading.failures?.[2]?.at).toBe("train.py:181 train_step");
  });

  it("knows the groups, the size of the job, and the rank's last words", () => {
    expect(reading.worldSize).toBe(8);
    expect(reading.logGroups).toContainEqual({
      rank: 2,
      name: "0",
      desc: "default_pg",
      groupRank: 2,
      size: 8,
    });
    expect(reading.logGroups).toContainEqual({
      rank: 2,
      name: "2",
      desc: "TENSOR_PARALLEL_1",
      groupRank: 0,
      size: 2,
    });
    expect(reading.rankLogs).toMatchObject([
      {
        rank: 2,
        lastLine: 6,
        lastTimeMs: Date.UTC(2026, 10, 15, 0, 41, 44, 44),
        dumpLine: 13,
        finished: false,
      },
    ]);
    expect(reading.rankLogs?.[0]?.lastText).toContain("training starts");
  });
});

describe("a rank that dies (recording oom2)", () => {
  it("accuses itself with the innermost frame of its own code", () => {
    const reading = read(OOM2_RANK2);
    expect(reading.failures).toMatchObject([
      {
        rank: 2,
        line: 7,
        role: "own",
        cause: "gpu-memory",
        signature: "cuda.oom.torch",
        at: "train.py:177 train_step",
      },
    ]);
    expect(reading.failures?.[0]?.timeMs).toBe(Date.UTC(2026, 10, 15, 0, 47, 2, 603));
    expect(reading.rankLogs?.[0]).toMatchObject({ lastLine: 7, dumpLine: 0 });
  });

  it("leaves only echoes in the logs of the others", () => {
    const reading = read(OOM2_RANK0);
    expect(brief(reading)).toEqual([
      "2 0 echo unknown torch.watchdog.dump-observed",
      "3 0 echo unknown torch.watchdog.last-work",
      "4 0 echo process-gone nccl.error.remote",
      "5 0 echo process-gone nccl.error.remote-name",
      "7 0 echo process-gone nccl.socket.closed-by-peer",
      "10 0 echo unknown torch.watchdog.after-dump",
    ]);
    expect(reading.watchdog).toMatchObject([
      { group: "0", seq: -1 },
      { group: "5", seq: 193, op: "ALLREDUCE", enqueued: 208, completed: 192 },
    ]);
  });
});

describe("watchdogs of other versions", () => {
  it("reads PyTorch 2.5: two frontier lines for one timeout", () => {
    const reading =
      read(`[rank3]:[E219 08:58:32.6 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=31, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.
[rank3]:[E219 08:58:32.6 ProcessGroupNCCL.cpp:1785] [PG ID 2 PG GUID 3 Rank 3] Exception (either an error or timeout) detected by watchdog at work: 31, last enqueued NCCL work: 58, last completed NCCL work: 30.
[rank3]:[E219 08:58:32.6 ProcessGroupNCCL.cpp:1834] [PG ID 2 PG GUID 3 Rank 3] Timeout at NCCL work: 31, last enqueued NCCL work: 58, last completed NCCL work: 30.
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 2 PG GUID 3 Rank 3] Process group watchdog thread terminated with exception: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=31, OpType=ALLREDUCE, NumelIn=1
`);
    expect(reading.watchdog).toMatchObject([
      { rank: 3, group: "3", seq: 31, enqueued: 58, completed: 30, timeMs: null },
    ]);
    expect(brief(reading)).toEqual([
      "1 3 echo unknown torch.watchdog.barrier",
      "2 3 echo unknown torch.watchdog.last-work",
      "5 3 echo unknown torch.watchdog.timeout",
    ]);
  });

  it("reads PyTorch 2.3 and 2.4: [PG 5 (NAME) Rank 1]", () => {
    const line =
      "[rank1]:[E ProcessGroupNCCL.cpp:1537] [PG 5 (DP) Rank 0] Timeout at NCCL work: 7, last enqueued NCCL work: 9, last completed NCCL work: 6.\n";
    expect(read(line).watchdog).toMatchObject([
      { rank: 1, group: "5", desc: "DP", groupRank: 0, seq: 7, enqueued: 9 },
    ]);
  });

  it("takes the bracket for the rank where an old log without prefixes has nothing else", () => {
    const line = (r: number): string =>
      `[E ProcessGroupNCCL.cpp:475] [Rank ${r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800572 milliseconds before timing out.\n`;
    expect(read(line(2) + line(1)).watchdog?.map((w) => [w.rank, w.groupRank, w.op])).toEqual([
      [2, 2, "ALLREDUCE"],
      [1, 1, "ALLREDUCE"],
    ]);
    expect(read(line(0), "rank5.log").watchdog?.[0]).toMatchObject({ rank: 5, groupRank: 0 });
    const older =
      "[E ProcessGroupNCCL.cpp:587] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, TensorShape=[1], Timeout(ms)=1800000) ran for 1 milliseconds before timing out.\n";
    expect(read(older).watchdog).toMatchObject([{ seq: -1, op: "BROADCAST" }]);
  });

  it("tells the frontiers of lagging ranks from a desync report", () => {
    const reading =
      read(`[rank0]:[E515 18:36:47.3 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=241, OpType=ALLREDUCE, NumelIn=6, NumelOut=6, Timeout(ms)=600000) ran for 600086 milliseconds before timing out.
[rank0]:[E515 18:36:47.3 ProcessGroupNCCL.cpp:1937] Rank 0
\t - [0] Timeout at collective: ALLREDUCE, #315
\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
\t   - [3] joined but didn't finish collective #182 (count from 1)
\t     [7] finished collective #182, but didn't join collective #183 (count from 1)
[rank0]:[E515 18:36:47.3 ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 241 PG status: last enqueued work: 315, last completed work: 183
`);
    expect(reading.watchdog?.map((w) => [w.rank, w.seq, w.enqueued, w.completed])).toEqual([
      [0, 241, 315, 183],
      [3, -1, 182, 181],
      [7, -1, 182, 182],
    ]);
    expect(brief(reading)).toContain("5 0 echo collective-mismatch torch.desync.not-finished");
  });
});

describe("tracebacks", () => {
  it("makes one failure of a chain: that of its first exception", () => {
    const reading = read(`Traceback (most recent call last):
  File "/app/data.py", line 5, in load
    return table[key]
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/train.py", line 9, in <module>
    load()
RuntimeError: failed to load
`);
    expect(reading.failures).toMatchObject([
      { line: 4, text: "KeyError: 'x'", at: "data.py:5 load" },
    ]);
  });

  it("passes over an echo at the start of a chain", () => {
    const reading = read(`Traceback (most recent call last):
  File "/app/net.py", line 5, in recv
BrokenPipeError: [Errno 32] Broken pipe

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/train.py", line 9, in <module>
ValueError: bad shape
`);
    expect(reading.failures).toMatchObject([
      { role: "own", text: "ValueError: bad shape", at: "train.py:9 <module>" },
    ]);
  });

  it("takes the exception inside the DataLoader's", () => {
    const reading = read(`Traceback (most recent call last):
  File "train.py", line 9, in <module>
    for batch in loader:
  File "/opt/lib/python3.12/site-packages/torch/utils/data/dataloader.py", line 700, in __next__
    data = self._next_data()
ValueError: Caught ValueError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/opt/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py", line 309, in _worker_loop
  File "/app/dataset.py", line 44, in __getitem__
ValueError: could not convert string to float: 'x'
`);
    expect(reading.failures).toMatchObject([
      {
        line: 10,
        text: "ValueError: could not convert string to float: 'x'",
        at: "dataset.py:44 __getitem__",
      },
    ]);
  });

  it("keeps interleaved writers apart", () => {
    const lines = [
      "Traceback (most recent call last):",
      '  File "/app/a.py", line %, in f',
      "ValueError: rank %",
    ];
    const text = lines
      .flatMap((l) => [1, 2].map((r) => `[rank${r}]: ${l.replace("%", String(r))}`))
      .join("\n");
    const reading = read(text);
    expect(reading.rank).toBeNull();
    expect(reading.failures?.map((f) => [f.rank, f.text, f.at])).toEqual([
      [1, "ValueError: rank 1", "a.py:1 f"],
      [2, "ValueError: rank 2", "a.py:2 f"],
    ]);
    expect(reading.rankLogs?.map((l) => [l.rank, l.lines])).toEqual([
      [1, 3],
      [2, 3],
    ]);
  });

  it("shows the line of the message that told", () => {
    const reading = read(`Traceback (most recent call last):
  File "/app/a.py", line 1, in f
torch.distributed.DistBackendError: NCCL error in: /pytorch/x.cpp:268, invalid usage, NCCL version 2.19.3
ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
Last error:
Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000
`);
    expect(reading.failures).toMatchObject([
      { cause: "user-config", signature: "nccl.duplicate-gpu" },
    ]);
    expect(reading.failures?.[0]?.text).toContain("Duplicate GPU detected");
  });

  it("passes over what Python ignores", () => {
    const text = `Exception ignored in: <function X.__del__ at 0x7f>\nTraceback (most recent call last):\n  File "/app/a.py", line 1, in f\nTypeError: 'NoneType' object is not callable\n`;
    expect(read(text).failures).toEqual([]);
  });

  it("reads on without the header, and through a progress bar", () => {
    const text = ` 14%|xx  | 380/2724 [14:02<86:01, 132.12s/it]\r 14%|xx  | 381/2724 [14:04<86:01, 132.12s/it]Traceback (most recent call last):\n  File "/app/a.py", line 1, in f\nValueError: x\n`;
    expect(read(text).failures).toMatchObject([{ line: 3, at: "a.py:1 f" }]);
    expect(read(text.slice(text.indexOf("  File"))).failures).toMatchObject([
      { line: 2, at: "a.py:1 f" },
    ]);
  });
});

describe("aftermath", () => {
  it("stays away from what a program gets wrong by itself", () => {
    const echo = HANG3_RANK2.split("\n")[6] ?? "";
    const own = `${echo}\n[rank2]: Traceback (most recent call last):\n[rank2]:   File "/a.py", line 1, in f\n[rank2]: ValueError: x\n`;
    expect(brief(read(own))).toEqual([
      "1 2 echo unknown torch.watchdog.timeout",
      "4 2 own user-program python.value-error",
    ]);
  });

  it("ends when the job runs again", () => {
    const echo = HANG3_RANK2.split("\n")[6] ?? "";
    const again = "2026-11-15 01:00:00.000 [INFO] [rank2] iteration 5/ 30 | lm loss: 1.0 |";
    const text = `${echo}\n${again}\n[rank2]: RuntimeError: CUDA error: an illegal memory access was encountered\n`;
    expect(brief(read(text)).at(-1)).toBe("3 2 own gpu-error cuda.illegal-access");
  });
});

describe("launchers", () => {
  const REPORT = `E1115 00:42:02.213000 77 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: -9) local_rank: 1 (pid: 102) of binary: /usr/bin/python3
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-15_00:42:03
  host      : node1
  rank      : 8 (local_rank: 0)
  exitcode  : 1 (pid: 101)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-15_00:42:02
  host      : node1
  rank      : 9 (local_rank: 1)
  exitcode  : -9 (pid: 102)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 102
============================================================
`;

  it("reads torchrun's closing report", () => {
    const reading = read(REPORT);
    expect(reading.torchrun).toEqual([
      {
        file: "log.txt",
        line: 9,
        rank: 8,
        host: "node1",
        pid: 101,
        exitCode: 1,
        signal: "",
        timeMs: Date.UTC(2026, 10, 15, 0, 42, 3),
        isFirst: false,
      },
      {
        file: "log.txt",
        line: 18,
        rank: 9,
        host: "node1",
        pid: 102,
        exitCode: -9,
        signal: "SIGKILL",
        timeMs: Date.UTC(2026, 10, 15, 0, 42, 2),
        isFirst: true,
      },
    ]);
    expect(brief(reading)).toEqual(["4 null echo unknown torch.elastic.child-failed"]);
  });

  it("makes do with the line before it where the report is cut off", () => {
    expect(brief(read(REPORT.slice(0, 200)))).toEqual(["1 null own process-gone exit-status"]);
  });

  it("takes what other launchers say of a child that failed", () => {
    const deepspeed =
      "[2026-11-15 00:42:02,213] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=7', '--zero', '2'] exits with return code = -9";
    const mpirun =
      "mpirun noticed that process rank 5 with PID 462 on node n1 exited on signal 6 (Aborted).";
    expect(brief(read(`using world size: 8\n${deepspeed}\n${mpirun}\n`))).toEqual([
      "2 null own process-gone exit-status",
      "3 5 echo unknown exit-status",
    ]);
  });

  it("takes whatever a process says for an echo once it was told to end", () => {
    const text = `[rank2]: ValueError: bad sample
[rank3]: Received SIGTERM, leaving
[rank3]: ValueError: half a batch
`;
    expect(brief(read(text))).toEqual([
      "1 2 own user-program python.value-error",
      "2 3 echo scheduler sig.sigterm",
      "3 3 echo user-program python.value-error",
    ]);
  });

  it("counts what processes without prefixes print alike", () => {
    const one = `Traceback (most recent call last):
  File "/app/a.py", line 1, in f
ValueError: x
`;
    expect(read(one.repeat(4)).failures).toMatchObject([{ times: 4 }]);
  });

  it("gives a traceback that the report quotes to the rank it is about", () => {
    const quoted = REPORT.replace(
      "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
      'Traceback (most recent call last):\n    File "/app/a.py", line 3, in f\n  ValueError: x',
    ).replace("  ValueError", "ValueError");
    expect(brief(read(quoted))).toContain("17 8 own user-program python.value-error");
  });

  it("learns global ranks from local ones where the file says how", () => {
    const text = `[default1]:Traceback (most recent call last):\n[default1]:  File "/app/a.py", line 3, in f\n[default1]:ValueError: x\n`;
    expect(read(text).failures?.[0]?.rank).toBeNull();
    expect(read(text + REPORT).failures?.[0]?.rank).toBe(9);
    expect(read(`[default0]:world size 2\n${text}`).failures?.[0]?.rank).toBe(1);
  });

  it("takes srun's labels for ranks where most lines have one, and PyTorch's word where they differ", () => {
    const raise = (p: string): string =>
      `${p}Traceback (most recent call last):\n${p}  File "/a.py", line 3, in f\n${p}ValueError: x\n`;
    expect(read(raise("3: ") + raise("5: ")).failures?.map((f) => f.rank)).toEqual([3, 5]);
    expect(
      read(raise("0: [rank4]: ") + raise("0: [rank5]: ")).failures?.map((f) => f.rank),
    ).toEqual([4, 5]);
  });
});

describe("iterations", () => {
  it.each([
    [
      " [2026-11-15 10:11:12.123456] iteration      812/    1000 | consumed samples: 5 | elapsed time per iteration (ms): 1.0 |",
      812,
    ],
    ["[default7]: iteration    45000/  115311 | consumed samples:     76002224 |", 45000],
    ["Training epoch 0, iteration 9/99 | lr: 0.1 | global_step: 9", 9],
    [
      "[titan] 2026-11-15 10:11:12,123 - root - INFO - \u001b[31mstep: 12  \u001b[32mloss:  1.5\u001b[0m",
      12,
    ],
    [
      "[2026-11-15 10:11:12,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.1]",
      10,
    ],
    ["steps: 20 loss: 1.5 iter time (s): 0.1 samples/sec: 4", 20],
    ["iter 83592: loss 1.5455, time: 4401.19ms", 83592],
    ["step 7, train loss: 1.5", 7],
  ])("%s", (line, iteration) => {
    expect(read(`${line}\n`).rankLogs?.[0]?.lastIteration).toBe(iteration);
  });

  it("takes the last one and knows when training finished", () => {
    const text = `2026-11-15 10:00:00.000 iteration 1/ 2 | x |\n2026-11-15 10:00:01.000 iteration 2/ 2 | x |\n2026-11-15 10:00:02.000 [INFO] training finished\n`;
    expect(read(text, "rank3.log").rankLogs).toMatchObject([
      {
        rank: 3,
        lastIteration: 2,
        finished: true,
        lastLine: 3,
      },
    ]);
    expect(read("nothing of the kind\n").rankLogs?.[0]).toMatchObject({
      lastIteration: -1,
      finished: false,
    });
  });
});

describe("the last words of a rank", () => {
  const asked =
    "[rank7]:[E1119 03:57:22.772223543 ProcessGroupNCCL.cpp:1628] [PG ID 0 PG GUID 0(default_pg) Rank 7] ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1, only active collectives: 0\n";
  const oldName =
    "[rank7]:[W1119 03:56:18.791104671 Utils.hpp:112] Warning: Environment variable TORCH_NCCL_DEBUG_INFO_TEMP_FILE is deprecated; use TORCH_FR_DUMP_TEMP_FILE instead (function operator())\n";

  it("are not what PyTorch notes when somebody asks for a dump", () => {
    const [log] = read(`loading shard 12\n${asked}${oldName}${asked}`, "rank7.log").rankLogs!;
    expect(log).toMatchObject({ rank: 7, lastLine: 1, lastText: "loading shard 12", dumpLine: 2 });
  });

  it("are none where all that it printed are notices", () => {
    const [log] = read(`NCCL version 2.28.9+cuda13.0\n${oldName}${asked}`, "rank7.log").rankLogs!;
    expect(log).toMatchObject({ lastLine: 0, lastText: "", lastTimeMs: null });
  });
});

describe("the rank of a file", () => {
  it.each([
    ["rank3.log", 3],
    ["logs/worker-12.out", 12],
    ["7.log", 7],
    ["slurm-88123.out", null],
    ["train-2026-11-15.log", null],
    ["local_rank3.log", null],
  ])("%s", (file, rank) => {
    expect(read("hello\n", file).rank).toBe(rank);
  });

  it("comes from the lines before it comes from the name", () => {
    expect(read(OOM2_RANK2, "rank5.log").rank).toBe(2);
    expect(read(OOM2_RANK2 + OOM2_RANK0, "rank5.log").rank).toBeNull();
  });

  it("is never the rank within a group", () => {
    const line =
      "[E1115 00:00:00.0 ProcessGroupNCCL.cpp:1] [PG ID 2 PG GUID 5(DP) Rank 1]  failure detected by watchdog at work sequence id: 1 PG status: last enqueued work: 1, last completed work: 0\n";
    expect(read(line).watchdog).toMatchObject([{ rank: null, groupRank: 1 }]);
  });
});

describe("NCCL's lines in a job's log", () => {
  it("introduces processes and echoes lost peers", () => {
    const reading = read(
      `node1:77:77 [0] NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 0 busId 1b000 commId 0xab - Init COMPLETE\nnode1:77:99 [0] misc/socket.cc:1 NCCL WARN Connection closed by remote peer node2<9>\n`,
    );
    expect(reading.ncclProcesses).toMatchObject([
      { host: "node1", pid: 77, commRank: 3, commSize: 8 },
    ]);
    expect(brief(reading)).toEqual(["2 3 echo process-gone nccl.socket.closed-by-peer"]);
  });
});

describe("as a reader", () => {
  const ALL = HANG3_RANK2 + OOM2_RANK0;

  it("reads the same at every chunk size", () => {
    const text = `\u001b[31m${ALL}\r\n 5%|x| 1/2 [00:01]\rTraceback (most recent call last):\né漢\n${OOM2_RANK2}`;
    const [first, ...others] = readAtAllSizes(rankLog, "f", text);
    for (const other of others) expect(other).toEqual(first);
  });

  it("survives a cut at every byte", () => {
    const text = OOM2_RANK0.slice(0, 1500) + OOM2_RANK2;
    for (const reading of readCutEverywhere(rankLog, "f", text, runs(5, 1))) {
      expect(reading.format).toBe("rank-log");
    }
  });

  it("survives random bytes and mutated lines", () => {
    const lines = ALL.split("\n");
    const mutated = fc
      .tuple(fc.constantFrom(...lines), fc.nat(150), fc.string())
      .map(([line, at, noise]) => line.slice(0, at) + noise + line.slice(at));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (b) => void readBytes(rankLog, "f", b)),
    );
    fc.assert(fc.property(fc.array(mutated, { maxLength: 30 }), (l) => void read(l.join("\n"))));
  });

  it("keeps the first and the last of a flood, and says how many it left out", () => {
    const flood = Array.from(
      { length: 4000 },
      (_, i) => `[rank${i}]: ValueError: number ${i}\n[rank${i}]:\n`,
    );
    const reading = read(flood.join(""));
    expect(reading.failures).toHaveLength(2000);
    expect(reading.failures?.[0]?.rank).toBe(0);
    expect(reading.failures?.at(-1)?.rank).toBe(3999);
    expect(reading.defects[0]?.what).toContain("2000 failures");
  });

  it("is not slowed down by lines made to trap regular expressions", () => {
    const traps = [
      "a".repeat(60_000),
      `Traceback ${" ".repeat(50_000)}`,
      "[rank".repeat(9000),
      `${"A.".repeat(20_000)}Error: x`,
      `iteration${" ".repeat(40_000)}1`,
      `MPS client ${"CUDA ".repeat(9000)}`,
      `${"/".repeat(30_000)}.cu:1 Assertion`,
    ];
    const text = traps
      .flatMap((t) => [t, `Traceback (most recent call last):\n  File "a.py", line 1, in f\n${t}`])
      .join("\n");
    expect(processorMs(() => read(text))).toBeLessThan(4000);
  });

  it("recognises logs", () => {
    const torchtitan = "[titan] 2026-11-15 10:11:12,123 - root - INFO - Building llama3\n".repeat(
      3,
    );
    for (const text of [
      HANG3_RANK2,
      OOM2_RANK2,
      " iteration 1/ 2 | lm loss: 1.0 |\n",
      torchtitan,
      "srun: error: n1: task 1: Killed\n",
    ]) {
      expect(sniffs(rankLog, text)).toBe(true);
    }
  });

  it("refuses prose, programs, tables, JSON, markup and noise", () => {
    const prose = "Training large models is hard. Errors happen, and ranks hang.\n".repeat(5);
    const program = 'import torch\n\ndef main():\n    print("[rank0]: x")\n    return 0\n'.repeat(
      5,
    );
    const table = "time,loss,rank\n2026-11-15 10:00:00,1.5,0\n2026-11-15 10:00:01,1.4,0\n".repeat(
      9,
    );
    const markdown = `# Notes\n\n${prose.repeat(8)}\n\`\`\`\n[rank0]: Traceback\n\`\`\`\n${prose.repeat(8)}`;
    for (const text of [
      "",
      prose,
      program,
      table,
      markdown,
      '{"a": 1}\n',
      "<html>",
      "\u0000\u0001",
      "a b c\n",
    ]) {
      expect(sniffs(rankLog, text)).toBe(false);
    }
  });
});
