"""Two ranks that one script starts by torch.multiprocessing: none of them has RANK."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, ranks, meet):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=ranks)
    value = torch.ones(1)
    dist.all_reduce(value)
    assert value.item() == ranks
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(work, args=(2, sys.argv[1]), nprocs=2)
