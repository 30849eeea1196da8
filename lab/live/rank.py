"""One rank of a job that the live service watches; its faults come and go while it trains.

rank.py [--outside LAYER,LAYER] SCRIPT ARGS...    as ../families/rank.py, with ../families/faults.py in the layers

A fault is on while $LIVE_FAULTS/<rank> exists. The file says "KIND MILLISECONDS":
  compute  so much more GPU time an iteration      spike  the same, in one iteration of eight
  data     the loader waits                        cpu    Python that holds the interpreter, spread over the layers' calls
  gpu      one kernel of that length, once for each time the file is made
Rank 0 keeps $JOB_OUT/iterations.json: how many there were, how many milliseconds the last took. While $LIVE_FAULTS/stop exists the
ranks end by themselves, all after the same iteration and with nothing left on the GPU.
"""
import os, signal, sys

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = os.path.join(os.path.dirname(HERE), "families")
rank = os.environ["RANK"]
os.environ.update(NCCL_HOSTID=f"node-{int(rank):03d}", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", GROUP_RANK=rank,
                  GROUP_WORLD_SIZE=os.environ["WORLD_SIZE"], NODE_RANK=rank)
sys.path[:0] = [FAMILIES, HERE]
import ctypes, runpy, time

import ending
import faults

ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no rank outlives its launcher
PATH = os.path.join(os.environ["LIVE_FAULTS"], rank)
EVERY = 8
state = {"looked": 0.0, "kind": "", "ms": 0.0, "done": None, "made": None}


def look():
    """The fault that is on now; the file is looked at most every 20 ms."""
    now = time.monotonic()
    if now - state["looked"] < 0.02:
        return
    state["looked"] = now
    try:
        state["made"] = os.stat(PATH).st_mtime_ns
        with open(PATH) as file:
            kind, ms = file.read().split()
        state.update(kind=kind, ms=float(ms))
    except (OSError, ValueError):
        state.update(kind="", made=None)


def amount(kind):
    look()
    on, ms = state["kind"], state["ms"]
    if kind == "data":
        return ms if on == "data" else 0.0
    if kind == "cpu":
        return ms / max(1, faults._per_step["forward"]) if on == "cpu" else 0.0
    if kind != "compute":
        return 0.0
    if on == "gpu" and state["made"] != state["done"]:
        state["done"] = state["made"]
        return ms
    if on == "spike" and faults.step % EVERY == 0 or on == "compute":
        return ms / max(1, sum(faults._per_step.values()))
    return 0.0


def settle():
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


plain_end = faults.end


def end():
    plain_end()
    ending.after(faults.step, faults.times, settle)


faults.amount = amount
faults.end = end
faults.due = lambda kind: False
faults.save_times = lambda: None
args = sys.argv[1:]
if args[0] == "--outside":
    faults.attach(set(args[1].split(",")))
    args = args[2:]
faults.short_timeout(600)
with open(f"{faults.out}/pid.{rank}", "w") as file:
    file.write(str(os.getpid()))
sys.argv = args
sys.path.insert(0, os.path.dirname(os.path.abspath(args[0])))
runpy.run_path(args[0], run_name="__main__")
