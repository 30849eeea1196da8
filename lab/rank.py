"""One rank of the job; started by train.py, which explains the options."""

import ctypes
import gc
import inspect
import json
import os
import signal
import statistics
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import options


def train(a, rank):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no rank outlives a launcher that was killed
    with open(f"{a.out}/pid.rank{rank}", "w") as file:
        file.write(str(os.getpid()))

    on_gpu = a.backend == "nccl"
    device = torch.device("cuda:0" if on_gpu else "cpu")
    dtype = torch.bfloat16 if on_gpu else torch.float32
    torch.set_num_threads(1)
    torch.manual_seed(1234 + rank)
    limit = timedelta(seconds=a.timeout)
    if on_gpu:
        torch.cuda.set_device(0)
        dist.init_process_group("nccl", timeout=limit, device_id=device)
    else:
        dist.init_process_group("gloo", timeout=limit)
    tp, dp, pp = rank % a.tp, rank // a.tp % a.dp, rank // (a.tp * a.dp)
    rank_of = lambda t, d, p: t + a.tp * (d + a.dp * p)
    described = "group_desc" in inspect.signature(dist.new_group).parameters

    def own_group(name, all_members):
        for i, members in enumerate(all_members):  # all ranks make all groups, in the same order
            group = dist.new_group(members, timeout=limit, **({"group_desc": f"{name}_{i}"} if described else {}))
            if rank in members:
                own = group
        return own

    T, D, P = range(a.tp), range(a.dp), range(a.pp)
    tensor = own_group("TENSOR_PARALLEL", [[rank_of(t, d, p) for t in T] for p in P for d in D])
    data = own_group("DATA_PARALLEL", [[rank_of(t, d, p) for d in D] for p in P for t in T])
    pipe = own_group("PIPELINE_PARALLEL", [[rank_of(t, d, p) for p in P] for d in D for t in T])

    step = 0

    def fault(kind, otherwise=1.0):
        """How strongly this rank has it now; 0 where it has not."""
        for f in a.fault:
            if f.kind == kind and f.rank == rank and f.at(step):
                return float(f.how or otherwise)
        return 0.0

    def busy(ms):
        end = time.perf_counter() + ms / 1e3
        while time.perf_counter() < end:
            pass

    def spin(ms):
        if ms and on_gpu:
            torch.cuda._sleep(int(ms * 1.98e6))  # cycles, at about 1.98 GHz
        elif ms:
            busy(ms)

    class Copied(torch.autograd.Function):
        """Megatron's f: a column-parallel layer's input; its gradient is summed over the tensor-parallel group."""

        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            spin(a.base_ms + fault("slow", 3))
            gradient = gradient.contiguous()
            dist.all_reduce(gradient, group=tensor)
            return gradient

    class Summed(torch.autograd.Function):
        """Megatron's g: a row-parallel layer's output is summed over the group."""

        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            dist.all_reduce(x, group=tensor)
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.LayerNorm(a.hidden)
            self.up = torch.nn.Linear(a.hidden, 4 * a.hidden // a.tp, bias=False)
            self.down = torch.nn.Linear(4 * a.hidden // a.tp, a.hidden, bias=False)

        def forward(self, x):
            spin(a.base_ms + fault("slow", 3))
            busy(fault("cpu", 4))
            if fault("gc"):
                gc.collect()
            return x + Summed.apply(self.down(torch.nn.functional.gelu(self.up(Copied.apply(self.norm(x))))))

    class Samples(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                time.sleep(fault("data", 200) / 1e3)
                if fault("raise"):
                    raise ValueError("could not broadcast input array from shape (1023,) into shape (1024,)")
                yield torch.randn(a.seq, a.hidden)

    model = torch.nn.Sequential(*[Layer() for _ in range(a.layers)]).to(device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = iter(torch.utils.data.DataLoader(Samples(), batch_size=1))

    def received(stage):
        x = torch.empty(1, a.seq, a.hidden, device=device, dtype=dtype)
        dist.recv(x, rank_of(tp, dp, stage), group=pipe)
        return x

    def one_step():
        ins, outs = [], []
        for micro in range(a.micro):
            if micro == a.micro // 2 and fault("stuck"):
                time.sleep(1 << 30)
            if micro == a.micro // 2 and fault("gpuhang"):
                torch.cuda._sleep(1 << 62)
            x = (next(loader).to(device, dtype) if pp == 0 else received(pp - 1)).requires_grad_()
            y = model(x)
            if pp < a.pp - 1:
                dist.send(y.detach().contiguous(), rank_of(tp, dp, pp + 1), group=pipe)
            ins.append(x)
            outs.append(y)
        for x, y in zip(ins, outs):
            y.float().pow(2).mean().backward() if pp == a.pp - 1 else y.backward(received(pp + 1))
            if pp > 0:
                dist.send(x.grad.contiguous(), rank_of(tp, dp, pp - 1), group=pipe)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=data)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if on_gpu:
            torch.cuda.current_stream().synchronize()

    def in_the_middle(what):
        timer = threading.Timer(statistics.median(times[-9:] or [100]) / 2e3, what)
        timer.daemon = True
        timer.start()

    wires = [f for f in a.fault if f.kind == "wire" and f.rank == rank]
    trigger = f"{a.out}/wire.{rank}"
    gc.collect()
    gc.freeze()
    garbage = [[float(i)] * 8 for i in range(100_000)]  # what a collection walks through
    times = []
    dist.barrier()
    print(f"training starts, {len(garbage)} objects, tp={tp} dp={dp} pp={pp}", flush=True)
    with open(f"{a.out}/times.rank{rank}", "w", buffering=1) as file:
        for step in range(a.steps):
            for kind, number in (("stop", signal.SIGSTOP), ("kill", signal.SIGKILL)):
                if fault(kind):
                    in_the_middle(lambda number=number: os.kill(os.getpid(), number))
            if any(f.first == step for f in wires):
                in_the_middle(lambda: open(trigger, "w").close())
            if any(f.last == step for f in wires) and os.path.exists(trigger):
                os.remove(trigger)
            began = time.perf_counter()
            one_step()
            times.append((time.perf_counter() - began) * 1e3)
            file.write(f"{times[-1]:.3f}\n")
            if step == a.validate:
                from faultline_probe import validation
                report = validation.run({"iteration": step, "gemm": True, "ring": True, "tree": True})
                with open(f"{a.out}/rank{rank}.validation.json", "w") as answer:
                    json.dump(report, answer)
    if a.recorder != "off" and on_gpu:
        dist.barrier()
        with open(f"{a.out}/fr_end_rank_{rank}", "wb") as dump:
            dump.write(torch._C._distributed_c10d._dump_nccl_trace(True, True, False))
    print("training finished", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    train(options.arguments(__doc__), int(os.environ["RANK"]))
