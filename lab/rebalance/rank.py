"""One rank of a job whose replicas share out micro-batches; one of them is slow for a while.

rank.py meg SCRIPT ARGS...    Megatron-LM's own program, untouched; with FAULTLINE_CONTROLLER through faultline_megatron
rank.py ddp ARGS...           ddp.py beside this file

BASE_MS=8           time of a micro-batch in good health (on a GPU beside what the model itself takes)
SLOW=RANK:FROM:TO:MS  so much more in each of that rank's micro-batches, from iteration FROM up to TO (from 0)
Rank 0 writes RECORD: a line of JSON for each iteration (loss, seconds, counts of the replicas).
"""
import json, os, runpy, signal, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
RANK = os.environ["RANK"]
os.environ.update(NCCL_HOSTID=f"node-{int(RANK):03d}", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", GROUP_RANK=RANK,
                  GROUP_WORLD_SIZE=os.environ["WORLD_SIZE"], NODE_RANK=RANK)
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "families"), os.path.join(HERE, "..", "..", "probe", "python")]
import ctypes

import torch

import faultline_microbatches
import faults

ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no rank outlives its launcher
slow_rank, slow_from, slow_to, slow_ms = (float(part) for part in os.environ.get("SLOW", "-1:0:0:0").split(":"))
base_ms = float(os.environ.get("BASE_MS", "8"))
state = {"iteration": 0, "ended": None, "counts": None}
record = open(os.environ["RECORD"], "w") if RANK == "0" else None


def work(share=1.0):
    """A part of a micro-batch's time, and of what is wrong with this rank."""
    slow = int(RANK) == slow_rank and slow_from <= state["iteration"] < slow_to
    ms = (base_ms + (slow_ms if slow else 0.0)) * share
    if os.environ.get("DEVICE") == "cpu":
        time.sleep(ms / 1e3)
    else:
        faults.spin(ms)


def end(loss):
    """An iteration has ended, on the GPU too: its loss is known."""
    now = time.time()
    if record:
        seconds = None if state["ended"] is None else now - state["ended"]
        record.write(json.dumps({"iteration": state["iteration"], "seconds": seconds, "loss": loss, "counts": state["counts"]}) + "\n")
        record.flush()
    state["ended"] = now
    state["iteration"] += 1


next_counts = faultline_microbatches.MicroBatches.next


def next_and_note(self):
    answer = next_counts(self)
    state["counts"] = list(self.counts)
    return answer


faultline_microbatches.MicroBatches.next = next_and_note


def megatron():
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    if os.environ.get("FAULTLINE_CONTROLLER"):
        import faultline_megatron

        assert faultline_megatron.install()
    import megatron.training.training as training

    # The last one given counts.
    layers = int([value for name, value in zip(sys.argv, sys.argv[1:]) if name == "--num-layers"][-1])

    def before_layer(module, args):
        if type(module).__name__ == "TransformerLayer" and torch.is_grad_enabled():
            work(1.0 / layers)

    torch.nn.modules.module.register_module_forward_pre_hook(before_layer)
    train_step = training.train_step

    def noted_step(*args, **kwargs):
        answer = train_step(*args, **kwargs)
        end(float(answer[0]["lm loss"]))
        return answer

    training.train_step = noted_step
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    job = sys.argv[1]
    sys.argv = sys.argv[2:]
    if job == "meg":
        megatron()
    else:
        sys.modules["rank"] = sys.modules["__main__"]  # ddp.py imports this file: one state for both
        sys.argv.insert(0, os.path.join(HERE, "ddp.py"))
        sys.path.insert(0, HERE)
        runpy.run_path(sys.argv[0], run_name="__main__")
