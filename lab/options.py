"""The options of the job, for its launcher (train.py) and its ranks (rank.py)."""

import argparse
import os
import re

KINDS = ("stop", "stuck", "gpuhang", "slow", "cpu", "gc", "data", "raise", "kill", "throttle", "wire")


class Fault:
    def __init__(self, text):
        found = re.fullmatch(r"(\w+):(\d+)(?:-(\d+))?(?::([\w.=]+))?(?:@(\d+)(?:-(\d+))?)?", text)
        if not found or found[1] not in KINDS or (found[1] == "wire") != (found[3] is not None):
            raise argparse.ArgumentTypeError(f"{text!r} is no fault KIND:WHO[:HOW][@FROM[-TO]]; kinds: {', '.join(KINDS)}")
        self.kind, self.rank, self.to, self.how = found[1], int(found[2]), int(found[3] or -1), found[4]
        self.first, self.last = int(found[5] or 0), int(found[6] or 1 << 30)
        if self.kind == "wire" and not re.fullmatch(r"dead|slow=[\d.]+", self.how or ""):
            raise argparse.ArgumentTypeError("a link is 'dead' or 'slow=MBPS'")

    def at(self, step):
        return self.first <= step < self.last


def arguments(description):
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    for name, default in dict(tp=2, dp=2, pp=2, steps=60, micro=4, layers=4, hidden=1024, seq=512).items():
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    p.add_argument("--base-ms", type=float, default=0, help="a layer's own GPU time, spun on one SM")
    p.add_argument("--fault", type=Fault, action="append", default=[])
    p.add_argument("--plugin", help="libfaultline.so as NCCL's profiler plug-in")
    p.add_argument("--mask", help="what the plug-in records: FAULTLINE_NCCL_MASK")
    p.add_argument("--shim", help="libfaultline.so by LD_PRELOAD")
    p.add_argument("--kernels", type=int, default=0, help="trace one matrix product in so many (needs --shim)")
    p.add_argument("--shim-records", choices=("auto", "0", "always"), default="auto", help="FAULTLINE_SHIM")
    p.add_argument("--probe", action="store_true", help="the Python probe, by its environment variables")
    p.add_argument("--recorder", choices=("off", "on", "timing"), default="off", help="PyTorch's flight recorder")
    p.add_argument("--validate", type=int, default=-1, metavar="STEP", help="test GPUs and links after this step")
    p.add_argument("--no-mps", action="store_true")
    p.add_argument("--rings", help="FAULTLINE_DIR; kept. Without it a folder in /dev/shm, removed at the end")
    p.add_argument("--name", default="lab")
    p.add_argument("--timeout", type=int, default=600, help="seconds of the process groups")
    p.add_argument("--limit", type=float, default=120, help="seconds after which all ranks are killed")
    p.add_argument("--port", type=int, default=0, help="of the rendezvous; a free one where 0")
    a = p.parse_args()
    a.out = os.path.abspath(a.out)
    a.world = a.tp * a.dp * a.pp
    if a.backend == "gloo" and any(f.kind == "gpuhang" for f in a.fault):
        p.error("gpuhang needs a GPU (--backend nccl)")
    if any(max(f.rank, f.to) >= a.world for f in a.fault):
        p.error(f"a fault names a rank that is not there: there are {a.world}")
    if (a.kernels or a.shim_records != "auto") and not a.shim:
        p.error("--kernels and --shim-records need --shim")
    return a
