import { describe, expect, it } from "vitest";
import type { Frame } from "../../model/operators.ts";
import { pauseOf } from "./pause-frames.ts";

const frame = (text: string): Frame => {
  const [file = "", func = ""] = text.split(" ");
  return { file, func, line: 1 };
};
const of = (...texts: string[]): string | null => pauseOf(texts.map(frame))?.pause ?? null;
const SITE = "/usr/lib/python3/site-packages";

describe("pauseOf", () => {
  it.each([
    ["checkpoint", `${SITE}/torch/serialization.py _save`, "train.py save_model"],
    ["checkpoint", `${SITE}/torch/storage.py cpu`, `${SITE}/torch/serialization.py save`],
    ["checkpoint", `${SITE}/torch/distributed/checkpoint/state_dict_saver.py save`],
    ["checkpoint", "/app/megatron/training/checkpointing.py save_checkpoint"],
    ["checkpoint", `${SITE}/transformers/modeling_utils.py save_pretrained`],
    ["evaluation", "/app/megatron/training/training.py evaluate"],
    ["evaluation", `${SITE}/transformers/trainer.py evaluation_loop`],
    ["evaluation", "/app/model.py forward", "/app/train.py validate"],
    ["compilation", `${SITE}/torch/_inductor/codecache.py load`],
    ["compilation", `${SITE}/torch/_dynamo/convert_frame.py _compile`],
    ["compilation", `${SITE}/triton/compiler/compiler.py compile`],
  ])("is a %s in %s", (pause, ...frames) => {
    expect(of(...frames, "/app/train.py main")).toBe(pause);
  });

  it.each([
    ["activations are recomputed", `${SITE}/torch/utils/checkpoint.py checkpoint`],
    ["what was compiled runs", `${SITE}/torch/_dynamo/eval_frame.py compile_wrapper`],
    ["what was compiled runs on the GPU", `${SITE}/torch/_inductor/output_code.py __call__`],
    ["a kernel is launched", `${SITE}/triton/runtime/jit.py run`],
    ["a rank waits", `${SITE}/torch/distributed/distributed_c10d.py barrier`],
    ["data is loaded", `${SITE}/torch/utils/data/dataloader.py __next__`],
  ])("is none where %s", (_, ...frames) => {
    expect(of(...frames, "/app/train.py train_step", "/app/train.py main")).toBeNull();
  });
});
