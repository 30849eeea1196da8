import { describe, expect, it } from "vitest";
import { diagnoseFiles, jobOf } from "../../test/support/in-memory.ts";
import { kernelSawGpuOf, kernelXidOf } from "./kernel-xid.ts";

const file = (name: string, text: string): { name: string; bytes: Uint8Array } => ({
  name,
  bytes: Buffer.from(text),
});

/** Four ranks on two machines. */
const JOB = file(
  "job.json",
  JSON.stringify({
    worldSize: 4,
    ranks: [0, 1, 2, 3].map((rank) => ({ rank, machine: `node${rank >> 1}`, gpu: rank & 1 })),
  }),
);
const nccl = (rank: number): string =>
  `node${rank >> 1}:${100 + rank}:${100 + rank} [${rank & 1}] NCCL INFO ncclCommInitRankConfig comm 0x7ab17d37 rank ${rank} nranks 4 cudaDev ${rank & 1} nvmlDev ${rank & 1} busId 1b000 commId 0x36bb86e1ab5b4fda - Init COMPLETE\n`;
const died = (
  rank: number,
): string => `${nccl(rank)}[rank${rank}]: Traceback (most recent call last):
[rank${rank}]:   File "/srv/job/train.py", line 181, in train_step
[rank${rank}]:     loss.item()
[rank${rank}]: torch.AcceleratorError: CUDA error: unspecified launch failure
`;
const logs = (dead: readonly number[]): ReturnType<typeof file>[] =>
  [0, 1, 2, 3].map((rank) =>
    file(`logs/rank${rank}.log`, dead.includes(rank) ? died(rank) : nccl(rank)),
  );
const xid = (words: string): string =>
  `[Fri Jul 31 21:31:26 2026] NVRM: Xid (PCI:0000:1b:00): 62, ${words}Internal micro-controller halt\n`;
const dmesg = (machine: string, words: string): ReturnType<typeof file> =>
  file(`logs/dmesg.${machine}.log`, xid(words));

describe("an Xid in a kernel's log", () => {
  it("makes a rank's own GPU error on that machine the answer, and not somebody else's", async () => {
    // Ranks of both machines say that their GPU failed: only one machine's driver does.
    const verdict = await diagnoseFiles([JOB, ...logs([0, 2]), dmesg("node1", "")]);
    expect(verdict.kind).toBe("crash");
    expect(verdict.suspects[0]).toMatchObject({ ranks: [2], cause: "gpu-error" });
    expect(verdict.suspects[0]!.score).toBeGreaterThan(0.9);
    expect(verdict.suspects).toHaveLength(1);
  });

  it("is that of the process it names", () => {
    const job = jobOf([JOB, ...logs([2, 3]), dmesg("node1", "pid=103, name=python, ")]);
    expect([0, 1, 2, 3].filter((rank) => kernelSawGpuOf(job, rank))).toEqual([3]);
  });

  it("names the rank where nobody else does", async () => {
    const verdict = await diagnoseFiles([
      JOB,
      ...logs([]),
      dmesg("node1", "pid=103, name=python, "),
    ]);
    expect(verdict.kind).toBe("crash");
    expect(verdict.suspects).toMatchObject([{ ranks: [3], cause: "gpu-error" }]);
  });

  it("is joined by the process id of a stack, where NCCL printed nothing", () => {
    const stack = file(
      "stacks/rank2.txt",
      'Process 4102: python train.py\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 4102 (active): "MainThread"\n    step (train.py:12)\n',
    );
    const job = jobOf([JOB, stack, dmesg("node1", "pid=4102, name=python, ")]);
    expect(job.failures.map(({ rank }) => rank)).toEqual([2]);
  });

  it("is that of any rank of its machine where it names no process that is known", () => {
    const job = jobOf([JOB, ...logs([2, 3]), dmesg("node1", "pid='<unknown>', ")]);
    expect([0, 1, 2, 3].filter((rank) => kernelSawGpuOf(job, rank))).toEqual([2, 3]);
  });

  it("is told with its number, and where it is not known to be of this rank, as its machine's", () => {
    const own = jobOf([JOB, ...logs([2, 3]), dmesg("node1", "pid=103, name=python, ")]);
    const nobodys = jobOf([JOB, ...logs([2, 3]), dmesg("node1", "")]);
    expect([0, 3].map((rank) => kernelXidOf(own, rank))).toEqual([
      null,
      "Xid 62 in the kernel's log",
    ]);
    expect(kernelXidOf(nobodys, 3)).toBe("Xid 62 in the kernel's log of its machine");
  });

  it("of a machine that nobody knows is nobody's", () => {
    const job = jobOf([JOB, ...logs([2]), dmesg("node7", ""), file("logs/kern.txt", xid(""))]);
    expect([0, 1, 2, 3].filter((rank) => kernelSawGpuOf(job, rank))).toEqual([]);
  });
});
