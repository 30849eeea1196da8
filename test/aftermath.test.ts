/**
 * How a job ended is not why: what follows a stand-still (a signal, a scheduler, a launcher, a watchdog's abort) is its
 * aftermath, what follows the end of training is no failure, and what every process raises is nobody's in particular.
 * Logs of eight ranks in the words of the launchers; two recordings of real jobs (fixtures/families).
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import type { Verdict } from "../src/model/verdict.ts";
import { diagnose } from "../src/pipeline/diagnose.ts";

const env = { signal: new AbortController().signal, progress: () => undefined };
const scratch = mkdtempSync(join(tmpdir(), "faultline-aftermath-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
let cases = 0;

/** Files by name, each as its lines. */
async function verdictOf(files: Readonly<Record<string, readonly string[]>>): Promise<Verdict> {
  const folder = mkdtempSync(join(scratch, `${++cases}-`));
  for (const [name, lines] of Object.entries(files))
    writeFileSync(join(folder, name), `${lines.join("\n")}\n`);
  return (await diagnose({ paths: [folder] }, env)).verdict;
}

const brief = ({ kind, suspects }: Verdict): unknown => ({
  kind,
  suspects: suspects.map(({ type, ranks, cause }) => `${type} ${ranks.join()} ${cause}`),
});

const RANKS = [0, 1, 2, 3, 4, 5, 6, 7];
const ITERATION_S = 5;
const ITERATIONS = 60;
/** When the last iteration was reported, in seconds since the job began. */
const LAST_S = ITERATIONS * ITERATION_S;
const TIMEOUT_S = LAST_S + 600;

const iso = (seconds: number): string =>
  new Date(Date.UTC(2026, 10, 15) + seconds * 1000).toISOString();
const day = (seconds: number): string => iso(seconds).slice(0, 10);
const clock = (seconds: number): string => iso(seconds).slice(11, 19);
const glog = (level: string, seconds: number): string =>
  `${level}${iso(seconds).slice(5, 7)}${iso(seconds).slice(8, 10)} ${clock(seconds)}.258000`;

/** Megatron's line, by the last rank; `prefix` as the launcher writes it. */
const iterations = (prefix = "[default7]:"): string[] => [
  `${prefix}using world size: 8, data-parallel size: 8`,
  ...Array.from(
    { length: ITERATIONS },
    (_, i) =>
      `${prefix} [${day((i + 1) * ITERATION_S)} ${clock((i + 1) * ITERATION_S)}] iteration ${String(i + 1).padStart(8)}/    1000 | consumed samples: ${16 * (i + 1)} | elapsed time per iteration (ms): 5000.0 | global batch size:    16 | lm loss: 1.6E+00 | number of skipped iterations:   0 |`,
  ),
];

/** Rank 3 does not come; the seven others' watchdogs say so, and it answers the call for a dump. */
const timeouts = (atS = TIMEOUT_S): string[] =>
  RANKS.map((rank) =>
    rank === 3
      ? `[default3]:[rank3]:[${glog("E", atS + 1)} ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from  rank 7 and we will try our best to dump the debug info. Last enqueued NCCL work: 110, last completed NCCL work: 110.`
      : `[default${rank}]:[rank${rank}]:[${glog("E", atS)} ProcessGroupNCCL.cpp:689] [Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=111, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600016 milliseconds before timing out.`,
  );

const aborts = (atS: number): string[] => [
  "[default0]:terminate called after throwing an instance of 'c10::DistBackendError'",
  "[default0]:  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=111, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600016 milliseconds before timing out.",
  "[default0]:Fatal Python error: Aborted",
  `${glog("W", atS)} 434 torch/distributed/elastic/multiprocessing/api.py:1012] Sending process 457 closing signal SIGTERM`,
];

interface Exit {
  readonly rank: number;
  readonly code: number;
  readonly atS: number;
}

/** torchrun's table; the last of them is what it calls the root cause. */
const table = (exits: readonly Exit[]): string[] => {
  const entry = ({ rank, code, atS }: Exit, i: number): string[] => [
    `[${i}]:`,
    `  time      : ${day(atS)}_${clock(atS)}`,
    "  host      : node0",
    `  rank      : ${rank} (local_rank: ${rank})`,
    `  exitcode  : ${code} (pid: ${457 + rank})`,
    "  error_file: <N/A>",
    code < 0
      ? `  traceback : Signal ${-code} (${code === -9 ? "SIGKILL" : code === -6 ? "SIGABRT" : "SIGTERM"}) received by PID ${457 + rank}`
      : "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
  ];
  return [
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "============================================================",
    "train.py FAILED",
    "------------------------------------------------------------",
    "Failures:",
    ...exits.slice(0, -1).flatMap(entry),
    "------------------------------------------------------------",
    "Root Cause (first observed failure):",
    ...entry(exits.at(-1)!, 0),
    "============================================================",
  ];
};

const traceback = (prefix: string, error: string, at = "model.py"): string[] =>
  [
    "Traceback (most recent call last):",
    '  File "/srv/job/train.py", line 40, in main',
    "    run(step)",
    `  File "/srv/job/${at}", line 212, in forward`,
    "    check(x)",
    error,
  ].map((line) => prefix + line);

/** Who ends a job, at a moment: what each launcher or scheduler writes. */
const ENDS: Readonly<Record<string, (atS: number) => readonly string[]>> = {
  "a SIGTERM to torchrun": (atS) => [
    `${glog("W", atS)} 434 torch/distributed/elastic/agent/server/api.py:739] Received 15 death signal, shutting down workers`,
    `${glog("W", atS)} 434 torch/distributed/elastic/multiprocessing/api.py:1012] Sending process 457 closing signal SIGTERM`,
    ...traceback(
      "",
      "torch.distributed.elastic.multiprocessing.api.SignalException: Process 434 got signal: 15",
    ),
  ],
  "Ctrl-C": (atS) => [
    `[${day(atS)} ${clock(atS)},258] torch.distributed.elastic.agent.server.api: [WARNING] Received Signals.SIGINT death signal, shutting down workers`,
    ...RANKS.flatMap((rank) => traceback(`[default${rank}]:[rank${rank}]: `, "KeyboardInterrupt")),
  ],
  scancel: (atS) => [
    `slurmstepd: error: *** STEP 8812.0 ON node0 CANCELLED AT ${iso(atS).slice(0, 19)} ***`,
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    "srun: error: node0: tasks 0-7: Terminated",
  ],
  "Slurm's time limit": (atS) => [
    `slurmstepd: error: *** STEP 8812.0 ON node0 CANCELLED AT ${iso(atS).slice(0, 19)} DUE TO TIME LIMIT ***`,
    "srun: error: node0: task 3: Killed",
  ],
  "Slurm's preemption": (atS) => [
    `slurmstepd: error: *** JOB 8812 ON node0 CANCELLED AT ${iso(atS).slice(0, 19)} DUE TO PREEMPTION ***`,
    ...traceback(
      "[default2]:[rank2]: ",
      "RuntimeError: DataLoader worker (pid 9) is killed by signal: Terminated. ",
    ),
  ],
  Kubernetes: (atS) => [
    `${iso(atS)} Warning Evicted pod/train-0 The node was low on resource: memory.`,
    ...RANKS.flatMap((rank) => [
      `[default${rank}]:[rank: ${rank}] Received SIGTERM: 15`,
      ...traceback(
        `[default${rank}]:[rank${rank}]: `,
        "lightning.pytorch.utilities.exceptions.SIGTERMException",
      ),
    ]),
  ],
  "mpirun's signal": (atS) => [
    `[${day(atS)} ${clock(atS)}] mpirun: Forwarding signal 15 to job`,
    "mpirun noticed that process rank 1 with PID 458 on node node0 exited on signal 15 (Terminated).",
  ],
};

describe("a job that stood still, its watchdogs said so, and then was ended", () => {
  const hung = [...iterations(), ...timeouts()];

  it.each(Object.entries(ENDS))("by %s, hangs for the rank that did not come", async (_, end) => {
    const verdict = await verdictOf({ "console.log": [...hung, ...end(TIMEOUT_S + 15)] });
    expect(brief(verdict)).toEqual({ kind: "hang", suspects: ["rank 3 cpu-stall"] });
  });

  it.each([
    [
      "by the watchdog's abort, which torchrun reports of the first it sees",
      [
        ...aborts(TIMEOUT_S + 60),
        ...table([
          ...[1, 2, 4, 5, 6, 7].map((rank) => ({ rank, code: -15, atS: TIMEOUT_S + 62 })),
          { rank: 3, code: -9, atS: TIMEOUT_S + 92 },
          { rank: 0, code: -6, atS: TIMEOUT_S + 60 },
        ]),
      ],
    ],
    [
      "by DeepSpeed's launcher",
      [
        ...aborts(TIMEOUT_S + 60).slice(0, 3),
        ...RANKS.map(
          (rank) =>
            `[${day(TIMEOUT_S + 61)} ${clock(TIMEOUT_S + 61)},001] [INFO] [launch.py:316:sigkill_handler] Killing subprocess ${457 + rank}`,
        ),
        `[${day(TIMEOUT_S + 62)} ${clock(TIMEOUT_S + 62)},001] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=7', '--zero', '2'] exits with return code = -6`,
      ],
    ],
    [
      "by Accelerate's launcher",
      traceback(
        "",
        "subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py']' returned non-zero exit status 1.",
        "launch.py",
      ),
    ],
  ])("%s, hangs for the same rank", async (_, end) => {
    const verdict = await verdictOf({ "console.log": [...hung, ...end] });
    expect(brief(verdict)).toEqual({ kind: "hang", suspects: ["rank 3 cpu-stall"] });
  });

  it("in logs of their own, with the scheduler's beside them, hangs for the same rank", async () => {
    const files = Object.fromEntries(
      RANKS.map((rank) => [
        `rank${rank}.log`,
        [...iterations(""), timeouts()[rank]!.replace(/^\[default\d\]:/, "")],
      ]),
    );
    const verdict = await verdictOf({ ...files, "slurm.out": ENDS["scancel"]!(TIMEOUT_S + 300) });
    expect(brief(verdict)).toEqual({ kind: "hang", suspects: ["rank 3 cpu-stall"] });
  });
});

describe("a job whose iterations had stopped forty minutes before it was ended", () => {
  it.each(Object.entries(ENDS))("by %s, hangs, and nobody is accused", async (_, end) => {
    const verdict = await verdictOf({ "console.log": [...iterations(), ...end(LAST_S + 2405)] });
    expect(brief(verdict)).toEqual({ kind: "hang", suspects: [] });
    expect(verdict.confidence).toBeLessThanOrEqual(0.3);
    expect(verdict.when.from).toBe(iso(LAST_S));
  });

  it("may have been evaluating for all that time, where it had said so", async () => {
    const evaluates = `[default7]: [${day(LAST_S + 1)} ${clock(LAST_S + 1)}] Evaluating on 51200 samples`;
    const end = ENDS["scancel"]!(LAST_S + 1300);
    const verdict = await verdictOf({ "console.log": [...iterations(), evaluates, ...end] });
    expect(verdict.kind).toBe("crash");
  });
});

describe("a job that ran until it was ended", () => {
  it.each(Object.entries(ENDS))("by %s, was ended by that", async (_, end) => {
    const verdict = await verdictOf({ "console.log": [...iterations(), ...end(LAST_S + 3)] });
    expect(brief(verdict)).toEqual({ kind: "crash", suspects: ["rank  scheduler"] });
  });

  it("on one machine first, is not hung for those who then waited", async () => {
    const end = ENDS["a SIGTERM to torchrun"]!(LAST_S + 3);
    const verdict = await verdictOf({ "console.log": [...iterations(), ...end, ...timeouts()] });
    expect(verdict.suspects[0]).toMatchObject({ cause: "scheduler" });
    expect(verdict.kind).toBe("crash");
  });
});

describe("an exception that every process raises", () => {
  const VALUE = "ValueError: hidden size 1000 cannot be split into 12 heads";
  const CONFIG = "AssertionError: global batch size (100) is not divisible by micro batch size (3)";
  const closing = table([
    ...[0, 1, 3, 4, 5, 6, 7].map((rank) => ({ rank, code: -15, atS: 42 })),
    { rank: 2, code: 1, atS: 41 },
  ]);
  const PREFIXES: Readonly<Record<string, (rank: number) => string>> = {
    "[rank3]:": (rank) => `[rank${rank}]: `,
    "[default3]:": (rank) => `[default${rank}]:`,
    "both prefixes": (rank) => `[default${rank}]:[rank${rank}]: `,
    "srun's labels": (rank) => `${rank}: `,
    "no prefix": () => "",
  };

  it.each(Object.entries(PREFIXES))("is the code's, in a console with %s", async (_, prefix) => {
    const lines = RANKS.flatMap((rank) => traceback(prefix(rank), VALUE));
    const verdict = await verdictOf({
      "console.log": ["using world size: 8, data-parallel size: 8", ...lines, ...closing],
    });
    expect(verdict).toMatchObject({
      kind: "crash",
      suspects: [{ type: "code", cause: "user-program" }],
    });
    expect(verdict.suspects).toHaveLength(1);
    expect([[], RANKS]).toContainEqual(verdict.suspects[0]!.ranks);
  });

  it("is the configuration's, in logs of their own", async () => {
    const files = RANKS.map((rank) => [`rank${rank}.log`, traceback("", CONFIG)]);
    const verdict = await verdictOf(Object.fromEntries(files) as Record<string, string[]>);
    expect(brief(verdict)).toEqual({
      kind: "crash",
      suspects: [`config ${RANKS.join()} user-config`],
    });
  });
});

describe("one process that failed first", () => {
  const OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.";

  it("died of its error, though the others timed out and Slurm ended the job", async () => {
    const verdict = await verdictOf({
      "console.log": [
        ...iterations(),
        ...traceback("[default3]:[rank3]: ", OOM),
        ...timeouts().filter((line) => !line.includes("rank3")),
        ...ENDS["scancel"]!(TIMEOUT_S + 300),
      ],
    });
    expect(brief(verdict)).toEqual({ kind: "crash", suspects: ["rank 3 gpu-memory"] });
  });

  it("is not whom torchrun saw dead first", async () => {
    const verdict = await verdictOf({
      "console.log": [
        ...iterations(),
        ...traceback("[default5]:[rank5]: ", OOM),
        ...table([
          { rank: 5, code: -15, atS: LAST_S + 9 },
          { rank: 1, code: 1, atS: LAST_S + 5 },
        ]),
      ],
    });
    expect(brief(verdict)).toEqual({ kind: "crash", suspects: ["rank 5 gpu-memory"] });
  });

  it("was killed, if that came before the others' time-outs", async () => {
    const verdict = await verdictOf({
      "console.log": [
        ...iterations(),
        ...timeouts().filter((line) => !line.includes("rank3")),
        ...table([
          { rank: 0, code: -6, atS: TIMEOUT_S + 60 },
          { rank: 3, code: -9, atS: LAST_S + 4 },
        ]),
      ],
    });
    expect(brief(verdict)).toEqual({ kind: "crash", suspects: ["rank 3 process-gone"] });
  });

  it("was killed, as mpirun noticed", async () => {
    const noticed =
      "mpirun noticed that process rank 5 with PID 462 on node node0 exited on signal 9 (Killed).";
    const verdict = await verdictOf({ "console.log": [...iterations("[1,7]<stdout>:"), noticed] });
    expect(brief(verdict)).toEqual({ kind: "crash", suspects: ["rank 5 process-gone"] });
  });
});

describe("a job that went on", () => {
  it("has not failed for an exception that it got over", async () => {
    const lines = iterations();
    const retry = traceback("[default4]:[rank4]: ", "OSError: cannot read shard 12, trying again");
    const verdict = await verdictOf({
      "console.log": [...lines.slice(0, 30), ...retry, ...lines.slice(30)],
    });
    expect(verdict.kind).not.toBe("crash");
    expect(verdict.suspects).toEqual([]);
  });

  it.each(["[default7]:", ""])(
    "to its end (prefix '%s') has not failed for what it printed as it left",
    async (prefix) => {
      const verdict = await verdictOf({
        "console.log": [
          ...iterations(prefix),
          `${prefix}[after training is done] datetime: ${day(LAST_S + 1)} ${clock(LAST_S + 1)}`,
          `[rank2]:[${glog("W", LAST_S + 2)} ProcessGroupNCCL.cpp:1575] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. (function operator())`,
          `[rank2]:[${glog("E", LAST_S + 2)} ProcessGroupNCCL.cpp:1628] [PG ID 11 PG GUID 62 Rank 2] ProcessGroupNCCL preparing to dump debug info. Include stack trace: 0, only active collectives: 0`,
          `[rank0]:[${glog("E", LAST_S + 480)} ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0(default_pg) Rank 0] Heartbeat monitor timed out! Process will be terminated after dumping debug info.`,
          ...timeouts(),
          ...ENDS["scancel"]!(TIMEOUT_S + 300),
        ],
      });
      expect(["healthy", "undetermined"]).toContain(verdict.kind);
      expect(verdict.suspects).toEqual([]);
    },
  );
});

describe("a recorded job", () => {
  const family = (name: string): string =>
    fileURLToPath(new URL(`../fixtures/families/${name}.tar.gz`, import.meta.url));

  it("that hung and was then ended by a SIGTERM hangs (Transformers' Trainer)", async () => {
    const { verdict } = await diagnose({ paths: [family("hf-hang3")] }, env);
    expect(brief(verdict)).toEqual({ kind: "hang", suspects: ["rank 3 cpu-stall"] });
  });

  it("in which every rank raised an error before any operator was pending crashed (Megatron-LM)", async () => {
    const { verdict } = await diagnose({ paths: [family("meg-valueerror")] }, env);
    expect(brief(verdict)).toEqual({
      kind: "crash",
      suspects: [`code ${RANKS.join()} user-program`],
    });
  });
});
