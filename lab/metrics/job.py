"""A synchronous training loop of two NCCL ranks on one GPU: rank 0 is the machine that is recorded, rank 1 the rest of a job.

    job.py CONTROL RANK DATA STEPS

Rank 0 takes a batch from its loaders (CPU and disk), multiplies matrices, copies over PCIe and joins an all-reduce. Rank 1
does nothing but join it, at the pace that CONTROL sets and never before rank 0 is there, so that what it puts on the
shared GPU is small. With a longer pace rank 0 waits inside NCCL's kernel, as a sound machine does in a job that another one
holds up.
"""

import mmap
import multiprocessing
import os
import signal
import struct
import sys
import time

ARRIVED, PACE, STOP_0, STOP_1, QUIT, STEP = range(6)
SLOTS = 8
LOADERS, CPU_S, READ, BATCH = 8, 0.9, 64 << 20, 8 << 20
SIZE, PRODUCTS, OFFLOAD, GRADIENTS = 8192, 100, 128 << 20, 16 << 20


class Control:
    """Numbers that the recorder and the ranks share through a file."""

    def __init__(self, path):
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.write(bytes(8 * SLOTS))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 8 * SLOTS)

    def get(self, slot):
        return struct.unpack_from("d", self.memory, 8 * slot)[0]

    def set(self, slot, value):
        struct.pack_into("d", self.memory, 8 * slot, value)


def load(data, queue, seed):
    """Reads a part of the data past the page cache and works on it for a fixed time of CPU."""
    import numpy as np

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    random = np.random.default_rng(seed)
    try:
        file = os.open(data, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        file = os.open(data, os.O_RDONLY)
    parts = os.fstat(file).st_size // READ
    buffer = mmap.mmap(-1, READ)
    while True:
        os.preadv(file, [buffer], int(random.integers(parts)) * READ)
        end = time.process_time() + CPU_S
        batch = np.frombuffer(buffer, dtype=np.int32)[: BATCH // 4]
        while time.process_time() < end:
            batch = np.sort(batch ^ int(random.integers(1 << 30)))
        queue.put(batch)


def stop_if(control, slot, step):
    stop = control.get(slot)
    if 0 < stop <= step:
        control.set(slot, 0)
        os.kill(os.getpid(), signal.SIGSTOP)


def recorded(torch, dist, control, queue, steps):
    weights = [torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) / 90 for _ in range(4)]
    gradients = torch.randn(GRADIENTS // 4, device="cuda")
    kept = torch.randn(OFFLOAD // 4, device="cuda")
    host = torch.empty(OFFLOAD // 4, pin_memory=True)
    x = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    step, began = 0, time.time()
    with open(steps, "w", buffering=1) as log:
        while not control.get(QUIT):
            batch = torch.from_numpy(queue.get())
            loaded = time.time()
            tokens = batch.to("cuda", non_blocking=True)
            host.copy_(kept, non_blocking=True)
            y = x
            for i in range(PRODUCTS):
                y = y @ weights[i % 4]
            kept.copy_(host, non_blocking=True)
            gradients += tokens.float().mean() * 1e-12
            torch.cuda.synchronize()
            computed = time.time()
            step += 1
            stop_if(control, STOP_0, step)
            control.set(ARRIVED, step)
            dist.all_reduce(gradients, op=dist.ReduceOp.AVG)
            torch.cuda.synchronize()
            control.set(STEP, step)
            now = time.time()
            log.write(f"{now:.3f} {step} {now - began:.4f} {loaded - began:.4f} {computed - loaded:.4f} {now - computed:.4f}\n")
            began = now


def rest(torch, dist, control):
    gradients = torch.zeros(GRADIENTS // 4, device="cuda")
    step, last = 0, time.time()
    while not control.get(QUIT):
        step += 1
        stop_if(control, STOP_1, step)
        while not control.get(QUIT) and (control.get(ARRIVED) < step or time.time() < last + control.get(PACE)):
            time.sleep(0.0005)
        last = time.time()
        dist.all_reduce(gradients, op=dist.ReduceOp.AVG)
        torch.cuda.synchronize()


def main():
    control, rank = Control(sys.argv[1]), int(sys.argv[2])
    workers, queue = [], None
    if rank == 0:  # Before CUDA is there: it does not survive a fork.
        context = multiprocessing.get_context("fork")
        queue = context.Queue(8)
        workers = [context.Process(target=load, args=(sys.argv[3], queue, seed), daemon=True) for seed in range(LOADERS)]
        for worker in workers:
            worker.start()
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", 0))
    if rank == 0:
        recorded(torch, dist, control, queue, sys.argv[4])
    else:
        rest(torch, dist, control)
    for worker in workers:
        worker.kill()
    os._exit(0)  # The other rank may be gone already.


if __name__ == "__main__":
    main()
