"""What the jobs of jobs-more.py and jobs-further.py share: options, layers with faults in them, exchanges, logs, the loop.

A job is a file with functions named after its families; each builds its models and returns what makes one iteration and answers
its loss. Without a GPU the same jobs run over Gloo, for rehearsals (small: --layers 2 --dim 64 --seq 16).
"""
import argparse, json, os, random, sys, time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import faults

ap = argparse.ArgumentParser()
ap.add_argument("family")
ap.add_argument("--steps", type=int, default=46)
ap.add_argument("--layers", type=int, default=8)
ap.add_argument("--dim", type=int, default=256)
ap.add_argument("--seq", type=int, default=128)
ap.add_argument("--lines", default="plain", choices=["nemo", "jsonl", "tqdm", "mosaic", "plain", "none"])
a = ap.parse_args()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
VOCAB = 1024
KIND = "cuda" if torch.cuda.is_available() else "cpu"
DEVICE = torch.device("cuda:0" if KIND == "cuda" else "cpu")
torch.manual_seed(11)
random.seed(rank + 100)


def begin(gloo=False):
    """Starts the process group; `gloo` where a family has a group of its own on the CPU, too."""
    if KIND == "cuda":
        torch.cuda.set_device(0)
        dist.init_process_group("cpu:gloo,cuda:nccl" if gloo else "nccl", device_id=DEVICE)
    else:
        dist.init_process_group("gloo")


def mesh(shape, names):
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(KIND, shape, mesh_dim_names=names)


def exchange(x, group):
    """Equal parts of the first dimension to everybody of the group."""
    x = x.contiguous()
    y = torch.empty_like(x)
    dist.all_to_all_single(y, x, group=group)
    return y


class Swap(torch.autograd.Function):
    """`exchange` in both passes."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return exchange(x, group)

    @staticmethod
    def backward(ctx, g):
        return exchange(g, ctx.group), None


class Shuffle(torch.autograd.Function):
    """Rows in uneven shares to everybody, and gradients back."""

    @staticmethod
    def forward(ctx, x, mine, theirs):
        ctx.splits = mine, theirs
        y = x.new_empty(sum(theirs), x.shape[1])
        dist.all_to_all_single(y, x.contiguous(), theirs, mine)
        return y

    @staticmethod
    def backward(ctx, g):
        mine, theirs = ctx.splits
        x = g.new_empty(sum(mine), g.shape[1])
        dist.all_to_all_single(x, g.contiguous(), mine, theirs)
        return x, None, None


def turn(x, group, way=1):
    """To the next rank of the group, from the one before."""
    n, me = dist.get_world_size(group), dist.get_rank(group)
    to, frm = (dist.get_global_rank(group, (me + d) % n) for d in (way, -way))
    y = torch.empty_like(x)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x.contiguous(), to, group=group), dist.P2POp(dist.irecv, y, frm, group=group)]):
        work.wait()
    return y


class Pass(torch.autograd.Function):
    """`turn` in both passes, backwards in the second."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return turn(x, group)

    @staticmethod
    def backward(ctx, g):
        return turn(g, ctx.group, -1), None


class Block(nn.Module):
    """A transformer layer with GPU time of its own and the faults before it. `attend` may spread its attention over ranks."""

    scale = 1.0      # of all layers' GPU time
    heavy = 1.0      # of this one's
    attend = None    # (q, k, v), each [batch, tokens, dim] -> [batch, tokens, dim]

    def __init__(self, d):
        super().__init__()
        self.qkv, self.wo = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.w1, self.w2 = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x):
        x = faults.Work.apply(x, Block.scale * self.heavy)
        q, k, v = self.qkv(self.n1(x)).chunk(3, -1)
        x = x + self.wo(attention(q, k, v, True) if Block.attend is None else Block.attend(q, k, v))
        return x + self.feed(self.n2(x))

    def feed(self, x):
        return self.w2(F.silu(self.w1(x)))


def attention(q, k, v, causal):
    heads = lambda y: y.view(y.shape[0], y.shape[1], -1, min(32, y.shape[2])).transpose(1, 2)
    y = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=causal)
    return y.transpose(1, 2).reshape(q.shape)


class Model(nn.Module):
    def __init__(self, layers, first=True, last=True, block=Block):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, a.dim) if first else nn.Identity()
        self.layers = nn.ModuleList(block(a.dim) for _ in range(layers))
        self.out = nn.Linear(a.dim, VOCAB, bias=False) if last else nn.Identity()

    def forward(self, x):
        return self.out(self.hidden(x))

    def hidden(self, x):
        x = self.tok(x)
        for l in self.layers:
            x = l(x)
        return x


def model(**more):
    return Model(a.layers, **more).to(DEVICE)


def loss_fn(y, target):
    return F.cross_entropy(y.flatten(0, 1).float(), target.flatten())


def batches(size=2, wait=None):
    """Endless batches, as a loader in the training process hands them out; `wait()` before each."""

    class Data(torch.utils.data.IterableDataset):
        def __iter__(self):
            n = 0
            while True:
                if n % size == 0:
                    faults.fetch()
                    if wait:
                        wait()
                n += 1
                yield torch.randint(0, VOCAB, (a.seq + 1,))

    loader = iter(torch.utils.data.DataLoader(Data(), batch_size=size))

    def following():
        ids = next(loader).to(DEVICE, non_blocking=True)
        return ids[:, :-1], ids[:, 1:].contiguous()

    return following


def ddp(module, group=None, **more):
    return nn.parallel.DistributedDataParallel(module, device_ids=[0] if KIND == "cuda" else None, process_group=group, bucket_cap_mb=2, **more)


def adamw(*modules, **more):
    params = [p for m in modules for p in m.parameters() if p.requires_grad]
    return torch.optim.AdamW(params, lr=1e-4, **more)


def apply(*optimizers):
    for one in optimizers:
        one.step()
        one.zero_grad(set_to_none=True)


def average(tensors, group=None):
    """One exchange for all of them, as hand-written loops do it."""
    tensors = [t for t in tensors if t is not None]
    flat = torch._utils._flatten_dense_tensors(tensors)
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    for t, new in zip(tensors, torch._utils._unflatten_dense_tensors(flat, tensors)):
        t.copy_(new)


def mean(loss, divisor=None):
    """The loss over all ranks, as most loops report it: here the CPU waits for the GPU."""
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / (divisor or world)


def shard(module, over):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = dict(mesh=over, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    for l in module.layers:
        fully_shard(l, **policy)
    return fully_shard(module, **policy) or module


def report(n, loss, s):
    if a.lines == "none" or (rank and a.lines != "jsonl"):
        return
    since = time.time() - STARTED
    if a.lines == "nemo":
        print(f"Training epoch 0, iteration {n - 1}/{a.steps - 1} | lr: 0.0001 | global_batch_size: 16 | global_step: {n - 1} | "
              f"reduced_train_loss: {loss:.3f} | train_step_timing in s: {s:.4f}", flush=True)
    elif a.lines == "jsonl":
        print(json.dumps({"rank": rank, "step": n, "loss": round(loss, 4), "iter_time": round(s, 4), "ts": time.time()}), flush=True)
    elif a.lines == "tqdm":
        sys.stderr.write(f"\r{n * 100 // a.steps:3d}%|{'#' * (n * 10 // a.steps):<10}| {n}/{a.steps} "
                         f"[{int(since) // 60:02d}:{int(since) % 60:02d}<00:09, {n / max(since, 1e-3):5.2f}it/s, loss={loss:.3f}]")
        sys.stderr.flush()
    elif a.lines == "mosaic":
        print(f"[batch={n}/{a.steps}]:\n\t Train time/batch: {n - 1}\n\t Train time/token: {n * 4096}\n\t Train loss/train/total: {loss:.4f}\n"
              f"\t Train throughput/batches_per_sec: {1 / s:.4f}\n\t Train time/total: {since / 3600:.6f}", flush=True)
    else:
        print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] step {n} done in {s * 1e3:.0f} ms, loss {loss:.3f}", flush=True)


def train(families):
    """Builds the family that was asked for and trains it."""
    global STARTED
    step = families[a.family]()
    dist.barrier()
    if KIND == "cuda":
        torch.cuda.synchronize()
    open(f"{faults.out}/started", "w").close()
    STARTED = time.time()
    for n in range(faults.last_step(a.steps)):
        faults.begin()
        t0 = time.time()
        loss = step(n)
        report(n + 1, loss, time.time() - t0)
        faults.end()
    faults.save_times()
    dist.destroy_process_group()
