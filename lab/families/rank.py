"""One rank under torchrun: takes the place of a host of its own, then runs a training script.

rank.py [--outside LAYER,LAYER] SCRIPT ARGS...    with --outside the script is not touched: faults come through hooks
"""
import os, runpy, signal, sys

rank = os.environ["RANK"]
os.environ.update(NCCL_HOSTID=f"node-{int(rank):03d}", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", GROUP_RANK=rank,
                  GROUP_WORLD_SIZE=os.environ["WORLD_SIZE"], NODE_RANK=rank)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults

args = sys.argv[1:]
if args[0] == "--outside":
    faults.attach(set(args[1].split(",")))
    args = args[2:]
faults.short_timeout(int(os.environ.get("GROUP_TIMEOUT", "8")))
with open(f"{faults.out}/pid.{rank}", "w") as f:
    f.write(str(os.getpid()))
if os.environ.get("STACKS"):
    import faulthandler

    faulthandler.register(signal.SIGUSR1, file=open(f"{faults.out}/stacks.rank{rank}.txt", "w"), all_threads=True)

sys.argv = args
sys.path.insert(0, os.path.dirname(os.path.abspath(args[0])))
runpy.run_path(args[0], run_name="__main__")
