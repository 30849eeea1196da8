"""The tests of GPUs and links alone, without a job:

    torchrun --nproc-per-node 8 -m faultline_probe.validate_main --out DIR [--ranks 0,1,4,5] [--repeats 3] [--mb 16,64]

or any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Each rank writes DIR/rank<r>.validation.json;
`faultline diagnose DIR` names the slow GPU or link.
"""

import argparse
import json
import os
import sys
import threading
import time
from datetime import timedelta

from . import validation

_GRACE_S = 15


def numbers(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def end(line):
    """Not in order: a transfer that never ended would hold the process."""
    print(line, file=sys.stderr, flush=True)
    os._exit(1)


def meet(dist, backend, deadline, limit):
    """The group of all ranks; ends the process where they are not there in time, and says who."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    host, port = os.environ.get("MASTER_ADDR", "localhost"), int(os.environ.get("MASTER_PORT", "29500"))
    # torchrun's agent may keep the store; PyTorch tells so in this way.
    is_kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"

    def left():
        return timedelta(seconds=max(1.0, deadline - time.monotonic()))

    store = None
    while store is None:
        try:
            store = dist.TCPStore(host, port, size, rank == 0 and not is_kept, left(), wait_for_workers=False)
        except Exception as error:
            # Some versions give up at once where nobody listens yet.
            if time.monotonic() >= deadline:
                why = "" if is_kept or rank == 0 else ": rank 0 is missing"
                end(f"rank {rank}: no meeting at {host}:{port} within {limit:g} s{why} ({error})".replace("\n", " ")[:300])
            time.sleep(0.2)
    store = dist.PrefixStore(f"faultline/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    pause, missing = min(0.5, max(0.02, size * 1e-3)), list(range(size))
    try:
        # Counters: reading one that is not there yet does not wait, in any version.
        store.add(f"here/{rank}", 1)
        while True:
            missing = [other for other in missing if not store.add(f"here/{other}", 0)]
            if not missing or time.monotonic() >= deadline:
                break
            time.sleep(pause)
    except Exception as error:
        end(f"rank {rank}: the meeting at {host}:{port} broke off ({error})".replace("\n", " ")[:300])
    if missing:
        names = ", ".join(map(str, missing[:20])) + (" …" if len(missing) > 20 else "")
        if rank == 0:
            time.sleep(1)  # Whoever asks us until the same moment shall have its answer.
        end(f"rank {rank}: not all {size} ranks came within {limit:g} s; missing: {names}")
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=left())


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

    deadline = time.monotonic() + a.limit
    # Whatever hangs in a library: the tests themselves end in time, and have some seconds to write what they have.
    watchdog = threading.Timer(a.limit + _GRACE_S, end, (f"not over {_GRACE_S} s after the limit of {a.limit:g} s: ended",))
    watchdog.daemon = True
    watchdog.start()
    import torch
    import torch.distributed as dist
    backend = a.backend or ("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        meet(dist, backend, deadline, a.limit)
    request = {"ranks": a.ranks, "repeats": a.repeats, "limitS": max(1.0, deadline - time.monotonic())}
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
        end(f"rank {report['rank']}: {report['remark']}")
    if dist.is_initialized():
        try:
            dist.barrier()
            dist.destroy_process_group()
        except RuntimeError:
            pass  # Others ended before; what was found here is written.
    watchdog.cancel()
    return 0


if __name__ == "__main__":
    sys.exit(main())
