"""A small data-parallel job of PyTorch over Gloo, one process a rank (RANK, WORLD_SIZE), with one fault on one rank.

    train.py MEET ITERATIONS FAULT RANK FROM [--workers]

MEET is a file the ranks meet through. FAULT: none, hang, exception. It begins with iteration FROM, from 1.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

MEET, ITERATIONS, FAULT, FAULTY, FROM = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BATCH, WIDTH = 8, 16
# What a healthy forward pass takes, as if the GPU computed.
FORWARD_S = 0.02


def is_faulty(fault, iteration):
    return FAULT == fault and RANK == FAULTY and iteration >= FROM


class Samples(Dataset):
    def __len__(self):
        return BATCH * (ITERATIONS + 4)

    def __getitem__(self, index):
        return torch.full((WIDTH,), float(index % 7))


def forward(model, batch, iteration):
    time.sleep(FORWARD_S)
    if is_faulty("hang", iteration):
        time.sleep(10_000)
    if is_faulty("exception", iteration):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    return model(batch).square().mean()


def train():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{MEET}", rank=RANK, world_size=RANKS)
    model = torch.nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    workers = 1 if "--workers" in sys.argv else 0
    batches = iter(DataLoader(Samples(), batch_size=BATCH, num_workers=workers))
    for iteration in range(1, ITERATIONS + 1):
        batch = next(batches)
        optimizer.zero_grad()
        forward(model, batch, iteration).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= RANKS
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


train()
print("trained")
