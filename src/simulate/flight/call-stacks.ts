import type { Frame } from "../../model/operators.ts";
import type { Kind, Op, Site } from "./op.ts";

const TORCH = "/opt/venv/lib/python3.12/site-packages/torch";
const SCRIPT = "/srv/job/train.py";

const ENTRY_LINE: Readonly<Record<Kind, readonly [string, number]>> = {
  all_reduce: ["all_reduce", 3068],
  _all_gather_base: ["all_gather_into_tensor", 4119],
  _reduce_scatter_base: ["reduce_scatter_tensor", 4486],
  all_to_all: ["all_to_all_single", 4598],
  broadcast: ["broadcast", 2990],
  all_reduce_barrier: ["barrier", 5030],
  send: ["send", 2575],
  recv: ["recv", 2622],
};

const apply: Frame = { func: "apply", file: `${TORCH}/autograd/function.py`, line: 596 };
const callImpl: Frame = { func: "_call_impl", file: `${TORCH}/nn/modules/module.py`, line: 1790 };
const step: Frame = { func: "train_step", file: SCRIPT, line: 164 };
const main: Frame = { func: "<module>", file: SCRIPT, line: 197 };
const own = (func: string, line: number): Frame => ({ func, file: SCRIPT, line });

const CALLERS: Readonly<Record<Site, readonly Frame[]>> = {
  "warm-up": [own("<module>", 188)],
  forward: [own("forward", 111), apply, own("forward", 130), callImpl, step, main],
  // The autograd thread has no Python caller above the function.
  backward: [own("backward", 104), apply],
  "experts-forward": [own("dispatch", 140), apply, own("forward", 148), callImpl, step, main],
  "experts-backward": [own("combine", 152), apply],
  send: [own("send_activation", 158), step, main],
  recv: [own("recv_activation", 155), step, main],
  gradients: [own("reduce_gradients", 171), own("train_step", 180), main],
  parameters: [own("gather_parameters", 175), own("train_step", 182), main],
  embedding: [own("reduce_embedding", 178), own("train_step", 183), main],
  norm: [own("log_norm", 185), own("train_step", 184), main],
  extra: [own("debug_check", 211), own("train_step", 166), main],
};

/** A plausible Python stack of an operator, innermost frame first. */
export function callStack(op: Op): Frame[] {
  const [func, line] = ENTRY_LINE[op.kind];
  const wrapper = { func: "wrapper", file: `${TORCH}/distributed/c10d_logger.py`, line: 83 };
  const entry = { func, file: `${TORCH}/distributed/distributed_c10d.py`, line };
  return [entry, wrapper, ...CALLERS[op.site]];
}

/** Backward passes run on autograd's own thread. */
export function isAutograd(op: Op): boolean {
  return op.site === "backward" || op.site === "experts-backward";
}
