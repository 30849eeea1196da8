"""Small training jobs, one for each way PyTorch itself spreads a model over ranks. jobs.py FAMILY [options]

  fsdptp     FSDP2 x tensor parallel x sequence parallel   fsdp2      FSDP2
  gpipe, 1f1b, int1f1b, bfs, zb, zbv                       pipeline schedules, 4 ranks deep, 2 replicas
  fsdp1      FullyShardedDataParallel, activations recomputed
  zero1      DDP with ZeroRedundancyOptimizer              accum      DDP, gradients of 4 batches before each exchange
  join       DDP with uneven inputs under Join             ddp        DDP
  compile    DDP, compiled layers                          graph      DDP, layers as CUDA graphs
  ep         experts spread by all-to-all, 4 x 2           cp         ring attention by send and receive, 4 x 2
  ckpt       FSDP2 that saves checkpoints in the background
  eval       DDP that evaluates every 12 iterations        varlen     FSDP2 with sequences of any length
"""
import argparse, contextlib, logging, os, random, shutil, time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh

import faults

ap = argparse.ArgumentParser()
ap.add_argument("family")
ap.add_argument("--steps", type=int, default=50)
ap.add_argument("--layers", type=int, default=8)
ap.add_argument("--dim", type=int, default=256)
ap.add_argument("--seq", type=int, default=128)
ap.add_argument("--micro", type=int, default=8)
ap.add_argument("--lines", default="titan", choices=["titan", "iter", "epoch", "dict", "plain", "none"])
ap.add_argument("--leave", action="store_true", help="ends without destroying the process groups")
a = ap.parse_args()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
VOCAB = 1024
PIPES = {"gpipe", "1f1b", "int1f1b", "bfs", "zb", "zbv"}

torch.cuda.set_device(0)
torch.manual_seed(7)
random.seed(rank)
backend = "cpu:gloo,cuda:nccl" if a.family == "ckpt" else "nccl"
dist.init_process_group(backend, device_id=torch.device("cuda:0"))
DEVICE = torch.device("cuda:0")
ring = None      # the group of context parallelism
experts = None   # the group of expert parallelism


class Exchange(torch.autograd.Function):
    """Rows to the ranks that own their experts, and gradients back."""

    @staticmethod
    def forward(ctx, x, mine, theirs):
        ctx.splits = mine, theirs
        y = x.new_empty(sum(theirs), x.shape[1])
        dist.all_to_all_single(y, x.contiguous(), theirs, mine, group=experts)
        return y

    @staticmethod
    def backward(ctx, g):
        mine, theirs = ctx.splits
        x = g.new_empty(sum(mine), g.shape[1])
        dist.all_to_all_single(x, g.contiguous(), mine, theirs, group=experts)
        return x, None, None


class Pass(torch.autograd.Function):
    """Keys and values to the next rank of the ring, those of the one before received; gradients the other way."""

    @staticmethod
    def _turn(x, way):
        n, me = dist.get_world_size(ring), dist.get_rank(ring)
        to, frm = (dist.get_global_rank(ring, (me + d) % n) for d in (way, -way))
        y = torch.empty_like(x)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x.contiguous(), to, group=ring),
                                            dist.P2POp(dist.irecv, y, frm, group=ring)]):
            work.wait()
        return y

    @staticmethod
    def forward(ctx, x):
        return Pass._turn(x, 1)

    @staticmethod
    def backward(ctx, g):
        return Pass._turn(g, -1)


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x):
        b, t, _ = x.shape
        heads = lambda y: y.view(b, y.shape[1], -1, 64).transpose(1, 2)
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        if ring is not None:
            kv, parts = torch.cat([k, v], -1), []
            for turn in range(dist.get_world_size(ring)):
                parts.append(kv)
                if turn + 1 < dist.get_world_size(ring):
                    kv = Pass.apply(kv)
            k, v = torch.cat(parts, 1).chunk(2, -1)
        y = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=ring is None)
        return self.wo(y.transpose(1, 2).reshape(b, q.shape[1], -1))


class Mlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w1, self.w2 = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)))


class Experts(nn.Module):
    """One expert a rank of the group, the best one for each token."""

    def __init__(self, d):
        super().__init__()
        self.router = nn.Linear(d, dist.get_world_size(experts), bias=False)
        self.expert = Mlp(d)

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weight, to = self.router(rows).softmax(-1).max(-1)
        order = to.argsort()
        sent = torch.bincount(to, minlength=dist.get_world_size(experts))
        got = torch.empty_like(sent)
        dist.all_to_all_single(got, sent, group=experts)
        sent, got = sent.tolist(), got.tolist()
        y = Exchange.apply(self.expert(Exchange.apply(rows[order], sent, got)), got, sent)
        return (torch.empty_like(y).index_copy(0, order, y) * weight[:, None]).view_as(x)


class Core(nn.Module):
    def __init__(self, d, moe=False):
        super().__init__()
        self.attention, self.feed_forward = Attention(d), Experts(d) if moe else Mlp(d)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.feed_forward(self.n2(x))


class Block(nn.Module):
    """A layer whose arithmetic (`core`) can be compiled or captured, with GPU time of its own and the faults before it."""

    scale = 1.0

    def __init__(self, d, moe=False):
        super().__init__()
        self.core = Core(d, moe)

    def forward(self, x):
        return self.core(faults.Work.apply(x, Block.scale))


class Model(nn.Module):
    def __init__(self, layers, first=True, last=True, moe=False):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, a.dim) if first else nn.Identity()
        self.layers = nn.ModuleList(Block(a.dim, moe) for _ in range(layers))
        self.out = nn.Linear(a.dim, VOCAB, bias=False) if last else nn.Identity()

    def forward(self, x):
        x = self.tok(x)
        for l in self.layers:
            x = l(x)
        return self.out(x)


def loss_fn(y, target):
    return F.cross_entropy(y.flatten(0, 1).float(), target.flatten())


class Data(torch.utils.data.IterableDataset):
    def __iter__(self):
        n = 0
        while True:
            if n % batch == 0:
                faults.fetch()
            n += 1
            yield torch.randint(0, VOCAB, (a.seq + 1,))


def ddp(model, **more):
    return nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=2, **more)


def shard(model, mesh):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for l in model.layers:
        fully_shard(l, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def tensor_parallel(model, mesh):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                                   parallelize_module)

    whole = lambda: PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    parallelize_module(model, mesh, {
        "tok": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})
    for l in model.layers:
        parallelize_module(l.core, mesh, {
            "n1": SequenceParallel(), "n2": SequenceParallel(), "attention": whole(), "feed_forward": whole(),
            "attention.wq": ColwiseParallel(), "attention.wk": ColwiseParallel(), "attention.wv": ColwiseParallel(),
            "attention.wo": RowwiseParallel(output_layouts=Shard(1)), "feed_forward.w1": ColwiseParallel(),
            "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1))})


def average(params, group):
    """One exchange for all gradients, as hand-written loops do it."""
    grads = [p.grad for p in params if p.grad is not None]
    flat = torch._utils._flatten_dense_tensors(grads)
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    for g, new in zip(grads, torch._utils._unflatten_dense_tensors(flat, grads)):
        g.copy_(new)


def pipeline():
    """A schedule over 4 ranks; each holds one stage, or two with another placement for each schedule."""
    from torch.distributed import pipelining as pl
    from torch.distributed.pipelining.schedules import ScheduleZBVZeroBubble

    mesh = init_device_mesh("cuda", (4, 2), mesh_dim_names=("pp", "dp"))
    me = mesh["pp"].get_local_rank()
    two = a.family not in ("gpipe", "1f1b")
    stages = 8 if two else 4
    mine = [me] if not two else [me, 7 - me] if a.family == "zbv" else [me, me + 4]
    parts = []
    for i in mine:
        part = Model(a.layers // stages, i == 0, i == stages - 1).to(DEVICE)
        parts.append(pl.PipelineStage(part, i, stages, DEVICE, group=mesh["pp"].get_group()))
    kind = {"gpipe": pl.ScheduleGPipe, "1f1b": pl.Schedule1F1B, "int1f1b": pl.ScheduleInterleaved1F1B, "bfs": pl.ScheduleLoopedBFS,
            "zb": pl.ScheduleInterleavedZeroBubble, "zbv": ScheduleZBVZeroBubble}[a.family]
    schedule = kind(parts if two else parts[0], n_microbatches=a.micro, loss_fn=loss_fn)
    return mesh, schedule, [p.submod for p in parts], 0 in mine, stages - 1 in mine


batch = a.micro if a.family in PIPES else 2
loader = iter(torch.utils.data.DataLoader(Data(), batch_size=batch))
spare = dist.group.WORLD     # where one collective too many goes
mesh = schedule = None
first = last = True
if a.family in PIPES:
    mesh, schedule, models, first, last = pipeline()
    spare = mesh["dp"].get_group()
elif a.family == "fsdptp":
    mesh = init_device_mesh("cuda", (world // 2, 2), mesh_dim_names=("dp_shard", "tp"))
    model = Model(a.layers).to(DEVICE)
    tensor_parallel(model, mesh["tp"])
    models = [shard(model, mesh["dp_shard"])]
    spare = mesh["tp"].get_group()
elif a.family in ("fsdp2", "ckpt", "varlen"):
    mesh = init_device_mesh("cuda", (world,), mesh_dim_names=("dp_shard",))
    models = [shard(Model(a.layers).to(DEVICE), mesh)]
    spare = mesh.get_group()
elif a.family == "fsdp1":
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = FullyShardedDataParallel(Model(a.layers), auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=DEVICE,
                                     mixed_precision=MixedPrecision(param_dtype=torch.bfloat16), use_orig_params=True)
    apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, Core))
    models = [model]
elif a.family == "ep":
    mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("dp", "ep"))
    experts = spare = mesh["ep"].get_group()
    models = [Model(a.layers, moe=True).to(DEVICE)]
elif a.family == "cp":
    mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("dp", "cp"))
    ring = spare = mesh["cp"].get_group()
    models = [ddp(Model(a.layers).to(DEVICE))]
else:
    model = Model(a.layers).to(DEVICE)
    if a.family == "compile":
        for l in model.layers:
            l.core.compile()
    if a.family == "graph":
        sample = torch.zeros(batch, a.seq, a.dim, device=DEVICE, requires_grad=True)
        cores = torch.cuda.make_graphed_callables(tuple(l.core for l in model.layers), tuple((sample.clone().detach().requires_grad_(),) for _ in model.layers))
        for l, core in zip(model.layers, cores):
            l.core = core
    models = [ddp(model, gradient_as_bucket_view=a.family == "accum")]

params = [p for m in models for p in m.parameters()]
if a.family == "zero1":
    from torch.distributed.optim import ZeroRedundancyOptimizer

    optimizer = ZeroRedundancyOptimizer(params, optimizer_class=torch.optim.AdamW, lr=1e-4)
else:
    optimizer = torch.optim.AdamW(params, lr=1e-4, foreach=a.family != "fsdptp")

logging.basicConfig(level=logging.INFO, format="[titan] %(asctime)s - root - %(levelname)s - %(message)s")


def report(n, loss, seconds):
    if a.lines == "none" or (rank != 0 and a.lines != "plain"):
        return
    if a.lines == "titan":
        logging.info(f"step: {n:2d}  loss: {loss:8.5f}  memory:  1.18GiB(0.84%)  tps: {int(batch * a.seq / seconds):,}  mfu: 0.13%")
    elif a.lines == "iter":
        print(f"iter {n - 1}: loss {loss:.4f}, time {seconds * 1e3:.2f}ms", flush=True)
    elif a.lines == "epoch":
        mean = sum(faults.times) / max(1, len(faults.times))
        print(f"Epoch: [0][{n:3d}/{a.steps}]\tTime {seconds:6.3f} ({mean:6.3f})\tLoss {loss:.4e}", flush=True)
    elif a.lines == "dict":
        print({"loss": round(loss, 4), "learning_rate": 1e-4, "step": n, "step_time": round(seconds, 4)}, flush=True)
    else:
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} rank={rank} global_step={n} loss={loss:.4f} step_time_ms={seconds * 1e3:.1f}", flush=True)


def save(n):
    """A checkpoint written while training goes on."""
    import torch.distributed.checkpoint as dcp

    global saving
    if saving is not None:
        saving.result()
    saving = dcp.async_save({"model": models[0].state_dict()}, checkpoint_id=f"{faults.out}/checkpoint/{n}")


def evaluate():
    models[0].eval()
    with torch.no_grad():
        total = torch.zeros((), device=DEVICE)
        for _ in range(4):
            ids = torch.randint(0, VOCAB, (batch, a.seq + 1), device=DEVICE)
            total += loss_fn(models[0](ids[:, :-1]), ids[:, 1:])
        dist.all_reduce(total)
    models[0].train()
    if rank == 0:
        print(f"validation loss {total.item() / 4 / world:.4f}", flush=True)


def train_step():
    ids = next(loader).to(DEVICE, non_blocking=True)
    if a.family == "varlen":
        Block.scale = random.uniform(0.5, 1.5)
        ids = ids[:, : 1 + int(a.seq * Block.scale / 1.5)]
    x, y = ids[:, :-1], ids[:, 1:].contiguous()
    if faults.due("extra"):
        dist.all_reduce(torch.ones(4, device=DEVICE), group=spare)
    if schedule is not None:
        losses = []
        schedule.step(*([x] if first else []), **({"target": y, "losses": losses} if last else {}))
        loss = torch.stack(losses).mean() if last else torch.zeros((), device=DEVICE)
    elif a.family == "accum":
        for i in range(4):
            with models[0].no_sync() if i < 3 else contextlib.nullcontext():
                loss = loss_fn(models[0](x), y) / 4
                loss.backward()
        loss = loss * 4
    else:
        loss = loss_fn(models[0](x), y)
        (loss * float("nan") if faults.due("nan") else loss).backward()
        if faults.due("nan"):
            loss = loss * float("nan")
    if schedule is not None and not faults.due("skip"):
        average(params, mesh["dp"].get_group())
    if a.family == "ep":
        inner = [p for n, p in models[0].named_parameters() if ".expert." in n]
        average([p for n, p in models[0].named_parameters() if ".expert." not in n], dist.group.WORLD)
        average(inner, mesh["dp"].get_group())
    optimizer.step()
    optimizer.zero_grad(set_to_none=a.family != "accum")
    if a.family == "join" or (faults.due("skip") and schedule is None):
        return loss.item()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return mean.item() / (2 if schedule is not None else world)


dist.barrier()
open(f"{faults.out}/started", "w").close()
saving = None
steps = faults.last_step(a.steps)
uneven = contextlib.nullcontext()
if a.family == "join":
    from torch.distributed.algorithms.join import Join

    steps, uneven = min(steps, a.steps - rank % 3), Join([models[0]])
with uneven:
    for _ in range(steps):
        faults.begin()
        started = time.time()
        loss = train_step()
        n = faults.step + 1
        if a.family == "ckpt" and n % 8 == 0:
            save(n)
        report(n, loss, time.time() - started)
        if loss != loss:
            raise FloatingPointError(f"loss is NaN at step {n}, stopping")
        faults.end()
        if a.family == "eval" and n % 12 == 0:
            evaluate()
faults.save_times()
if steps < a.steps and a.family != "join":
    if rank == 0 or a.lines == "plain":
        print("training finished: no more batches", flush=True)
    time.sleep(600)
if saving is not None:
    saving.result()
    dist.barrier()
    if rank == 0:
        shutil.rmtree(f"{faults.out}/checkpoint", ignore_errors=True)
if not a.leave:
    dist.destroy_process_group()
