/** Frameworks whose micro-batches follow a controller: the same training with uneven shares, and refusals. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { pythonOfTorch, pythonWith, script, start } from "./microbatch-job/processes.ts";
import { unlessThere } from "../support/lacking.ts";

const RANKS = 4;
const EVEN = [4, 4, 4, 4];
/** Shares from an iteration on: even, uneven twice, even, uneven to the end. */
const PLAN = [
  [0, EVEN],
  [3, [5, 5, 1, 5]],
  [6, [6, 4, 2, 4]],
  [8, EVEN],
  [10, [3, 3, 3, 7]],
] as const;

interface Iteration {
  readonly loss: number;
  readonly samples: readonly number[];
  readonly taken: number;
  readonly consumed: number;
}
interface Run {
  /** Per rank, an iteration each. */
  readonly ranks: readonly (readonly Iteration[])[];
  readonly parameters: readonly number[];
  readonly said: readonly string[];
}

async function run(python: string, program: string, how: object): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "faultline-adapters-"));
  try {
    const jobs = Array.from({ length: RANKS }, (_, rank) =>
      start(python, [
        script(program),
        String(rank),
        String(RANKS),
        join(folder, "meet"),
        JSON.stringify(how),
      ]),
    );
    await Promise.all(jobs.map(({ ended }) => ended));
    const ranks = jobs.map(({ lines }) => lines.filter((line) => "loss" in line));
    return {
      ranks: ranks as unknown as Iteration[][],
      parameters: jobs[0]!.lines.at(-1)!.parameters!,
      said: jobs.map((job) => job.said()),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function expectSameTraining(wanted: Run, got: Run, digitsOfLoss = 9): void {
  expect(got.ranks[0]).toHaveLength(wanted.ranks[0]!.length);
  wanted.ranks[0]!.forEach(({ loss }, i) =>
    expect(got.ranks[0]![i]!.loss).toBeCloseTo(loss, digitsOfLoss),
  );
  expect(got.parameters).toHaveLength(wanted.parameters.length);
  wanted.parameters.forEach((value, i) => expect(got.parameters[i]).toBeCloseTo(value, 9));
}

const whyNoTorch = unlessThere(pythonOfTorch !== null, "PyTorch", "python3-torch");

describe.skipIf(pythonOfTorch === null)(`Megatron's parts on four replicas${whyNoTorch}`, () => {
  const megatron = (how: object): Promise<Run> => run(pythonOfTorch!, "megatron_train.py", how);
  const takenBy = ({ ranks }: Run, iteration: number): number[] =>
    ranks.map((lines) => lines[iteration]!.taken);
  const samplesOf = ({ ranks }: Run, iteration: number): number[] =>
    ranks.flatMap((lines) => lines[iteration]!.samples).toSorted((a, b) => a - b);

  // The job as it is, without the adapter.
  let untouched: Promise<Run> | undefined;
  const alone = (): Promise<Run> => (untouched ??= megatron({ plan: null }));

  it.each([
    { name: "losses divided by micro-batches", how: {} },
    { name: "the address on one node only", how: { addressAt: [0] } },
    {
      name: "losses divided by tokens, workers that load ahead",
      how: { perToken: true, args: { num_workers: 2 } },
    },
  ])("learn the same with uneven shares: $name", async ({ how }) => {
    const before = "perToken" in how ? await megatron({ plan: null, ...how }) : await alone();
    const helped = await megatron({ plan: PLAN, ...how });
    expectSameTraining(before, helped);
    // To the bit while shares have not changed yet.
    for (const i of [0, 1, 2])
      expect(helped.ranks.map((lines) => lines[i])).toEqual(before.ranks.map((lines) => lines[i]));
    expect([2, 3, 6, 8, 10, 13].map((i) => takenBy(helped, i))).toEqual([
      EVEN,
      [5, 5, 1, 5],
      [6, 4, 2, 4],
      EVEN,
      [3, 3, 3, 7],
      [3, 3, 3, 7],
    ]);
    before.ranks[0]!.forEach(({ consumed }, i) => {
      expect(samplesOf(helped, i)).toEqual(samplesOf(before, i));
      expect(helped.ranks[0]![i]!.consumed).toBe(consumed);
    });
  });

  it.each([
    {
      what: "arguments that forbid it on one rank alone",
      how: { argsOfRank3: { use_megatron_fsdp: true } },
      why: "FSDP gathers parameters",
    },
    {
      what: "the controller's address on another node than rank 0's",
      how: { addressAt: [3] },
      why: "no controller is given: set FAULTLINE_CONTROLLER on the node of rank 0",
    },
    {
      what: "a loss function that asks all replicas",
      how: { crossing: true },
      why: "the job calls all_reduce between replicas within a micro-batch",
    },
    {
      what: "another build of Megatron-LM",
      how: { without: "get_virtual_pipeline_model_parallel_world_size" },
      why: "this Megatron-LM (0.0.stand-in) is built otherwise than 0.20, which was tried",
    },
  ])("stay even with $what, and say why", async ({ how, why }) => {
    const refused = await megatron({ plan: PLAN, ...how });
    const before = await alone();
    refused.ranks.forEach((lines, rank) =>
      expect(lines.map(({ samples }) => samples)).toEqual(
        before.ranks[rank]!.map(({ samples }) => samples),
      ),
    );
    expect(refused.parameters).toEqual(before.parameters);
    expect(refused.said.join("")).toContain(`micro-batches stay even: ${why}`);
  });

  it("cannot have uneven shares in these cases", async () => {
    const job = start(pythonOfTorch!, [script("megatron_refusals.py")]);
    await job.ended;
    const reasons = job.lines[0] as Record<string, string | null>;
    expect(reasons).toEqual({
      plain: null,
      "one replica": "there is only one replica",
      "one micro-batch each": expect.stringContaining("cannot be shared out"),
      use_megatron_fsdp: expect.stringContaining("FSDP gathers parameters in every micro-batch"),
      use_torch_fsdp2: expect.stringContaining("FSDP gathers parameters in every micro-batch"),
      expert_model_parallel_size: expect.stringContaining("experts are spread over replicas"),
      gtp_weight_remat_size: expect.stringContaining("weights are gathered from replicas"),
      rampup_batch_size: expect.stringContaining("the global batch changes its size"),
      cuda_graph_impl: "CUDA graphs fix the number of micro-batches",
      iterations_to_skip: expect.stringContaining("skipped iterations"),
      "another data loader": expect.stringContaining("--dataloader-type single"),
    });
  });

  it("are even again when the global batch changes its size", async () => {
    const how = { lateGlobalBatch: 16 };
    const before = await megatron({ plan: null, ...how });
    const helped = await megatron({
      plan: [
        [0, EVEN],
        [4, [5, 5, 1, 5]],
      ],
      ...how,
    });
    expectSameTraining(before, helped);
    expect(takenBy(helped, 8)).toEqual([5, 5, 1, 5]);
    expect(takenBy(helped, 9)).toEqual([2, 2, 2, 2]);
    before.ranks[0]!.forEach((_, i) => expect(samplesOf(helped, i)).toEqual(samplesOf(before, i)));
    expect(helped.said[0]).toContain("the global batch has changed its size");
  });
});

const pythonOfTransformers = pythonWith("import transformers, accelerate, torch");
const whyNoTrainer = unlessThere(
  pythonOfTransformers !== null,
  "Transformers",
  "python3-pip, pip install transformers accelerate",
);

describe.skipIf(pythonOfTransformers === null)(`a Trainer on four replicas${whyNoTrainer}`, () => {
  const trainer = (how: object): Promise<Run> => run(pythonOfTransformers!, "trainer.py", how);

  it.each([
    { name: "tokens of all ranks", how: {} },
    {
      name: "a model's own mean, workers that load ahead",
      how: { ownLoss: true, args: { dataloader_num_workers: 2 } },
    },
  ])("learns the same with uneven shares: $name", async ({ how }) => {
    const alone = await trainer({ plan: null, ...how });
    const helped = await trainer({ plan: PLAN, ...how });
    expect(helped.ranks[0]!.length).toBe(20);
    // Trainer sums losses up in single precision.
    expectSameTraining(alone, helped, 5);
    expect(helped.said[0]).toContain("micro-batches [6, 4, 2, 4]");
    expect(helped.said[0]).toContain("micro-batches [3, 3, 3, 7]");
  });

  it("stays even where each rank divides by its own tokens, and says why", async () => {
    const how = { args: { average_tokens_across_devices: false } };
    const refused = await trainer({ plan: PLAN, ...how });
    expect(refused.parameters).toEqual((await trainer({ plan: null, ...how })).parameters);
    expect(refused.said[0]).toContain("batches stay even: each rank divides by its own tokens");
  });
});
