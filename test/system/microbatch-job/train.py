"""One rank of a data-parallel job on CPU (Gloo), whose replica 2 computes slowly for a while. Prints a JSON line an
iteration, and the parameters in the end. Arguments: rank, ranks, file to meet at, controller's address or "none"."""

import json
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from faultline_microbatches import MicroBatches, torch_exchange

RANK, RANKS, MEET, URL = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
TOTAL, SIZE = 16, 4
ITERATIONS, FAULT, SLOW_RANK = 50, range(6, 26), 2
USUAL_S, SLOW_S = 0.01, 0.08

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{MEET}", rank=RANK, world_size=RANKS)
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
mb = MicroBatches(None if URL == "none" else URL, "test", TOTAL, RANK, RANKS, torch_exchange())
mb.watch(model)


def micro_batch(iteration, number):
    """The global batch is the same whoever takes which part of it."""
    source = torch.Generator().manual_seed(1000 * iteration + number)
    inputs = torch.randn(SIZE, 8, generator=source, dtype=torch.float64)
    return inputs, inputs.sin().sum(1, keepdim=True)


def compute(iteration, number):
    inputs, wanted = micro_batch(iteration, number)
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    time.sleep(SLOW_S if RANK == SLOW_RANK and iteration in FAULT else USUAL_S)
    (loss * mb.weight / mb.count).backward()


for iteration in range(ITERATIONS):
    started = time.perf_counter()
    count, weight = mb.next()
    optimizer.zero_grad()
    with mb.timed():
        with model.no_sync():
            for i in range(count - 1):
                compute(iteration, mb.offset + i)
        compute(iteration, mb.offset + count - 1)
    optimizer.step()
    print(json.dumps({"counts": mb.counts, "seconds": time.perf_counter() - started}), flush=True)
print(json.dumps({"parameters": [p for t in net.parameters() for p in t.flatten().tolist()]}), flush=True)
dist.barrier()
