"""The tests of GPUs and links alone, without a job:

    torchrun --nproc-per-node 8 -m faultline_probe.validate_main --out DIR [--ranks 0,1,4,5] [--repeats 3] [--mb 16,64]

or any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Each rank writes DIR/rank<r>.validation.json;
`faultline diagnose DIR` names the slow GPU or link.
"""

import argparse
import json
import os
import sys
from datetime import timedelta

from . import validation


def numbers(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="faultline_probe.validate_main", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--tests", default="gemm,ring,tree")
    parser.add_argument("--ranks", type=numbers(int), help="test these alone")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--mb", type=numbers(float), help="sizes of the transfers; 16,32,64 on GPUs, 1,2,4 on CPUs")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which it ends with what it has")
    parser.add_argument("--backend", help="nccl where there are GPUs, else gloo")
    a = parser.parse_args(arguments)
    tests = a.tests.split(",")
    if not set(tests) <= {"gemm", "ring", "tree"}:
        parser.error("--tests takes gemm, ring and tree")

    import torch
    import torch.distributed as dist
    backend = a.backend or ("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        dist.init_process_group(backend, timeout=timedelta(seconds=a.limit + 60))
    request = {"ranks": a.ranks, "repeats": a.repeats, "limitS": a.limit}
    request.update({test: test in tests for test in ("gemm", "ring", "tree")})
    if a.mb:
        request["mb"] = a.mb
    report = validation.run(request)
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, f"rank{report['rank']}.validation.json")
    with open(f"{path}.part", "w") as file:
        json.dump(report, file)
    os.replace(f"{path}.part", path)
    if "remark" in report:
        print(f"rank {report['rank']}: {report['remark']}", file=sys.stderr)
        # Not in order: a transfer that never ended would hold the process.
        sys.stderr.flush()
        os._exit(1)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
