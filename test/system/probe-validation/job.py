"""One rank of a job whose GPUs and links are tested, with a fault in each case: job.py RANK RANKS FOLDER CASE…

Faults are put around PyTorch's own functions here; the tests under test know nothing of them.
"""

import json
import os
import sys
import threading
import time

import torch
import torch.distributed as dist

from faultline_probe import validation

rank, ranks, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", rank=rank, world_size=ranks, init_method=f"file://{folder}/meet")
pair = dist.new_group([0, 2])
real_mm, real_isend = torch.mm, dist.isend
QUICK = {"repeats": 9, "mb": 4, "limitS": 60}
LIMIT = 8


# Far longer than what a busy machine does to a healthy product or transfer.
SLOWER_S = 0.4


def slow_mm(*words, **named):
    end = time.thread_time() + SLOWER_S
    while time.thread_time() < end:
        pass
    return real_mm(*words, **named)


def slow_isend(tensor, peer, *words, **named):
    if (rank, peer) == (1, 2):
        time.sleep(SLOWER_S)
    return real_isend(tensor, peer, *words, **named)


def late_isend(tensor, peer, *words, **named):
    if (rank, peer) == (1, 2):
        time.sleep(LIMIT + 2)
    return real_isend(tensor, peer, *words, **named)


def state():
    return [torch.get_rng_state().sum().item(), torch.is_grad_enabled(), torch.get_num_threads()]


def sum_of_ranks():
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    return total.item()


def test(case, number):
    if case == "slow-gpu" and rank == 2:
        torch.mm = slow_mm
    if case == "slow-link":
        dist.isend = slow_isend
    if case == "late-link":
        dist.isend = late_isend
        return validation.run({"atIteration": number, "gemm": False, "tree": False, "ring": True, "repeats": 1, "mb": 1, "limitS": LIMIT})
    if case == "missing":
        # One member is somewhere else, and comes back to the job's own work later.
        if rank == ranks - 1:
            time.sleep(LIMIT + 2)
            return None
        return validation.run({**QUICK, "atIteration": number, "limitS": LIMIT})
    if case == "pair":
        return validation.run({**QUICK, "atIteration": number, "ranks": [0, 2]})
    if case == "no-group":
        return validation.run({**QUICK, "atIteration": number, "ranks": [0, 1, 3]})
    return validation.run({**QUICK, "atIteration": number})


for number, case in enumerate(sys.argv[4:]):
    dist.barrier()
    torch.manual_seed(rank)
    before = state()
    began = time.monotonic()
    report = test(case, number)
    seconds = time.monotonic() - began
    torch.mm, dist.isend = real_mm, real_isend
    after = state()
    os.makedirs(f"{folder}/{case}", exist_ok=True)
    if report is not None:
        with open(f"{folder}/{case}/rank{rank}.validation.json", "w") as file:
            json.dump(report, file)
    # The job goes on whatever came of the test.
    print(json.dumps({"case": case, "seconds": seconds, "unchanged": before == after, "sum": sum_of_ranks()}), flush=True)

# What was given up ends a little later; a process that ends before is another story.
for thread in threading.enumerate():
    if thread.name == "faultline-validation":
        thread.join(30)
dist.barrier()
