import { describe, expect, it } from "vitest";
import { cudaGdb } from "./cuda-gdb.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";

const TABLE = `== devices
  Dev PCI Bus/Dev ID        Name Description SM Type SMs Warps/SM Lanes/Warp Max Regs/Lane Active SMs Mask
*   0        04:00.0 NVIDIA H200      GH100-A   sm_90 132       64         32           256 0x3
== kernels
  Kernel Parent Dev Grid Status   SMs Mask GridDim  BlockDim Invocation
`;
const HOST = `== host threads

Thread 2 (Thread 0x7f0001 (LWP 702) "pt_nccl_watchdg"):
#0  0x00007f12 in pthread_cond_timedwait () from /lib/libc.so.6

Thread 1 (Thread 0x7f0000 (LWP 701) "python"):
#0  0x00007f13 in clock_nanosleep (clock_id=..., req=...) at ../sysdeps/clock_nanosleep.c:48
#1  time_sleep (self=...) at ./Modules/timemodule.c:383
[Inferior 1 (process 701) detached]
`;

function inspection(rank: string, kernels: string, more = "", samples = 1): string {
  const look = (n: number): string =>
    `== sample ${n}, 2026-11-15T21:48:13Z\n[New LWP 702]\n${TABLE}${kernels}${more}${HOST}`;
  const looks = Array.from({ length: samples }, (_, i) => look(i + 1)).join("");
  return `faultline cuda-gdb 1\nprocess: 701\nrank: ${rank}\nhost: node003\n${looks}`;
}

const NCCL =
  "*      0      -   0   17 Active      0x3 (4,1,1) (544,1,1) ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)\n";
const BLOCKS = `== kernel 0
[Switching focus to CUDA kernel 0, grid 17, block (0,0,0), thread (0,0,0), device 0, sm 0, warp 0, lane 0]
== blocks of kernel 0
  BlockIdx To BlockIdx Count   State
Kernel 0
*  (0,0,0)     (1,0,0)     2 running
   (3,0,0)     (3,0,0)     1 running
== threads of kernel 0
  BlockIdx ThreadIdx To BlockIdx To ThreadIdx Count                 PC Filename  Line
Kernel 0
*  (0,0,0)   (0,0,0)     (0,0,0)    (543,0,0)   544 0x00007fffcf26fed0      n/a     0
== kernel 1
Request cannot be satisfied. CUDA focus unchanged.
== code of kernel 0, block 0
=> 0x7fffcf26fed0: LDG.E.64.STRONG.SYS R2, [R4.64]
`;
const ALL = inspection("3", NCCL, BLOCKS, 2);

describe("what cuda-gdb saw", () => {
  it("knows its file", () => {
    expect(sniffs(cudaGdb, ALL)).toBe(true);
    expect(sniffs(cudaGdb, "Process 701: python train.py\n")).toBe(false);
  });

  it("tells the NCCL kernel that a rank is in, and how many channels are left", () => {
    const reading = readBytes(cudaGdb, "inspect.txt", ALL);
    expect(reading).toMatchObject({ rank: 3, format: "cuda-gdb", records: 1, defects: [] });
    const [gpu, ...host] = reading.stacks![0]!.threads;
    expect(gpu).toMatchObject({
      name: "GPU",
      isMain: true,
      frames: [{ func: "all_reduce (NCCL kernel Sum_f32_RING_LL, 3 of 4 channels left)" }],
    });
    expect(host.map(({ name, isMain }) => [name, isMain])).toEqual([
      ["LWP 702", false],
      ["MainThread", false],
    ]);
    expect(host[1]!.frames[1]).toEqual({
      func: "time_sleep",
      file: "./Modules/timemodule.c",
      line: 383,
    });
  });

  it("takes the host's main thread where the GPU is empty", () => {
    const empty = inspection("5", "No CUDA kernels.\n");
    const { stacks, defects } = readBytes(cudaGdb, "inspect.txt", empty);
    expect(defects).toEqual([]);
    const main = stacks![0]!.threads.find(({ isMain }) => isMain)!;
    expect(main.frames[0]!.func).toBe("clock_nanosleep");
  });

  it("tells another kernel from communication, also with clusters of blocks", () => {
    const other =
      "*      0      -   0   17 Active      0x3 (64,1,1) (2,1,1) (256,1,1) void at::native::spin<float>(long)\n";
    const { stacks } = readBytes(cudaGdb, "inspect.txt", inspection("1", other));
    expect(stacks![0]!.threads[0]!.frames[0]).toMatchObject({
      func: "void at::native::spin (GPU kernel)",
      file: "GPU",
    });
  });

  it("says nothing of a rank where the debugger saw nothing of the GPU", () => {
    const refused =
      "faultline cuda-gdb 1\nprocess: 701\nrank: 2\n== sample 1, x\nptrace: Operation not permitted.\n== devices\n== not done within 60 s\n";
    const { stacks, defects } = readBytes(cudaGdb, "inspect.txt", refused);
    expect(stacks).toBeUndefined();
    expect(defects.map(({ what }) => what)).toEqual([
      "the debugger did not see the GPU: it could not attach, or is not cuda-gdb",
      "the debugger was stopped before it had seen everything",
    ]);
  });

  it("does not care for chunks, and survives a cut anywhere", () => {
    const [first, ...others] = readAtAllSizes(cudaGdb, "inspect.txt", ALL);
    for (const other of others) expect(other).toEqual(first);
    expect(readCutEverywhere(cudaGdb, "inspect.txt", ALL)).toHaveLength(ALL.length + 1);
  });
});
