"""A training loop of plain PyTorch, as docs/guides/microbatches.md has it. Started by rank.py. ddp.py TOTAL STEPS"""
import os, sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

import rank as lab
from faultline_microbatches import MicroBatches, torch_exchange

total, steps = int(sys.argv[1]), int(sys.argv[2])
device = os.environ.get("DEVICE", "cuda")
WIDTH, VOCAB, LENGTH = (256, 512, 64) if device == "cuda" else (32, 64, 8)
if device == "cuda":
    torch.cuda.set_device(0)
dist.init_process_group("nccl" if device == "cuda" else "gloo", init_method="env://")
me, world = dist.get_rank(), dist.get_world_size()


class Timed(torch.autograd.Function):
    """The lab's time for a micro-batch, in the backward pass: before gradients are exchanged, as a slow GPU's is."""

    @staticmethod
    def forward(ctx, x):
        lab.work(0.5)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        lab.work(0.5)
        return gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, VOCAB)

    def forward(self, x):
        return self.out(Timed.apply(self.layers(self.tokens(x))))


torch.manual_seed(11)
model = DistributedDataParallel(Net().to(device))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
mb = MicroBatches(os.environ.get("FAULTLINE_CONTROLLER"), job=os.environ.get("FAULTLINE_JOB", "ddp"), total=total, replica=me,
                  replicas=world, exchange=torch_exchange(dist.new_group(backend="gloo")))
mb.watch(model)


def loss_of(step, n):
    """Mean loss of micro-batch n of the global batch: the next token, in a language of few rules."""
    source = torch.Generator().manual_seed(1_000_003 * step + n)
    first = torch.randint(0, VOCAB, (2, 1), generator=source)
    ids = (first + 7 * torch.arange(LENGTH + 1) + torch.randint(0, 3, (2, LENGTH + 1), generator=source)) % VOCAB
    ids = ids.to(device)
    return nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


for step in range(steps):
    count, weight = mb.next()
    optimizer.zero_grad()
    sum_of_losses = torch.zeros((), device=device, dtype=torch.float64)
    with mb.timed():
        with model.no_sync():
            for i in range(count - 1):
                loss = loss_of(step, mb.offset + i)
                (loss * weight / count).backward()
                sum_of_losses += loss.detach()
        loss = loss_of(step, mb.offset + count - 1)
        (loss * weight / count).backward()
        sum_of_losses += loss.detach()
    optimizer.step()
    dist.all_reduce(sum_of_losses)
    lab.end(sum_of_losses.item() / total)
dist.barrier()
dist.destroy_process_group()
