"""One rank of a job of two pipeline stages with two replicas each (Gloo): DistributedDataParallel over the replicas of
the own stage. Prints the gradient of one backward pass. Arguments: rank, ranks, file to meet at."""

import json
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from faultline_microbatches import MicroBatches, torch_exchange

RANK, RANKS, MEET = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{MEET}", rank=RANK, world_size=RANKS)
stages = [dist.new_group([0, 1]), dist.new_group([2, 3])]
net = torch.nn.Linear(1, 1, bias=False).double()
model = DistributedDataParallel(net, process_group=stages[RANK // 2])
mb = MicroBatches(None, "stages", 4, RANK % 2, 2, torch_exchange())
mb.watch(model)
mb.next()
with mb.timed():
    model(torch.full((1, 1), RANK + 1.0, dtype=torch.float64)).sum().backward()
print(json.dumps({"gradient": net.weight.grad.item()}), flush=True)
dist.barrier()
