"""One process that trains until somebody ends it; prints the number of each step. Two optimizers, one iteration."""

import sys

import torch
import torch.distributed as dist

if len(sys.argv) > 1:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizers = [torch.optim.Adam(part.parameters()) for part in (first, second)]
for step in range(1, 100_000):
    for optimizer in optimizers:
        optimizer.zero_grad()
    second(first(torch.ones(2, 4))).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    print(step, flush=True)
