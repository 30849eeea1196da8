"""Ways to spread work that jobs.py does not have. jobs-more.py FAMILY [options]

  dualpipe   DualPipeV, 8 stages on 4 ranks x 2      imb        1F1B over 4 uneven stages x 2
  ulysses    attention's heads spread by all-to-all, 4 x 2
  hsdp       FSDP2 on a 2 x 4 mesh                   accfsdp    FSDP2, gradients of 4 batches before each exchange
  tp8        tensor parallel over all ranks          halo       neighbours exchange edges, then all average
  dlrm       embedding tables spread over ranks, rows by uneven all-to-all
  syncbn     convolutions with synchronized norms    gan        two models in turn
  diloco     local steps, averaged every sixth       rl         answers of random length, then two updates
  curric     DDP whose work grows in the middle      hook       DDP with compressed gradients
  databound  DDP that waits for its loaders
"""
import random, time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import common as c
import faults


def replicas(module, **more):
    """A model as DDP has it, and one plain iteration of it."""
    net, following = c.ddp(module), c.batches(**more)
    opt = c.adamw(net)

    def step(n):
        x, y = following()
        loss = c.loss_fn(net(x), y)
        loss.backward()
        c.apply(opt)
        return c.mean(loss)

    return net, step


def pipeline(stages, schedule, heavy=None):
    from torch.distributed import pipelining as pl

    c.begin()
    over = c.mesh((4, 2), ("pp", "dp"))
    me = over["pp"].get_local_rank()
    mine = [me] if stages == 4 else [me, 7 - me]
    parts = []
    for i in mine:
        part = c.Model(c.a.layers // stages, i == 0, i == stages - 1).to(c.DEVICE)
        if heavy and i == stages - 1:
            for l in part.layers:
                l.heavy = heavy
        parts.append(pl.PipelineStage(part, i, stages, c.DEVICE, group=over["pp"].get_group()))
    plan = schedule(pl)(parts if stages == 8 else parts[0], n_microbatches=8, loss_fn=c.loss_fn)
    params = [p for part in parts for p in part.submod.parameters()]
    opt, following = torch.optim.AdamW(params, lr=1e-4), c.batches(8)

    def step(n):
        x, y = following()
        losses = []
        plan.step(*([x] if 0 in mine else []), **({"target": y, "losses": losses} if stages - 1 in mine else {}))
        c.average([p.grad for p in params], over["dp"].get_group())
        c.apply(opt)
        return c.mean(torch.stack(losses).mean() if losses else torch.zeros((), device=c.DEVICE), 2)

    return step


def dualpipe():
    def kind(pl):
        from torch.distributed.pipelining import schedules

        return schedules.ScheduleDualPipeV

    return pipeline(8, kind)


def imb():
    return pipeline(4, lambda pl: pl.Schedule1F1B, heavy=1.7)


def ulysses():
    c.begin()
    group = c.mesh((2, 4), ("dp", "sp"))["sp"].get_group()
    n = dist.get_world_size(group)

    def attend(q, k, v):
        """[batch, tokens of this rank, all heads] -> [batch, all tokens, heads of this rank], and back."""
        b, t, d = q.shape
        x = torch.stack([q, k, v], 2).view(b, t, 3, n, d // n).permute(3, 0, 1, 2, 4)
        x = c.Swap.apply(x, group).permute(1, 0, 2, 3, 4).reshape(b, n * t, 3, d // n)
        y = c.attention(*(part.contiguous() for part in x.unbind(2)), False).view(b, n, t, d // n).permute(1, 0, 2, 3)
        return c.Swap.apply(y, group).permute(1, 2, 0, 3).reshape(b, t, d)

    c.Block.attend = staticmethod(attend)
    return replicas(c.model())[1]


def hsdp():
    c.begin()
    return sharded(c.shard(c.model(), c.mesh((2, c.world // 2), ("rep", "shard"))))


def sharded(net, parts=1):
    opt, following = c.adamw(net), c.batches()

    def step(n):
        x, y = following()
        for i in range(parts):
            if parts > 1:
                net.set_requires_gradient_sync(i == parts - 1)
            loss = c.loss_fn(net(x), y)
            (loss / parts).backward()
        c.apply(opt)
        return c.mean(loss)

    return step


def accfsdp():
    c.begin()
    return sharded(c.shard(c.model(), c.mesh((c.world,), ("shard",))), 4)


def tp8():
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    c.begin()
    over, net = c.mesh((c.world,), ("tp",)), c.model()
    for l in net.layers:
        parallelize_module(l, over, {"w1": ColwiseParallel(), "w2": RowwiseParallel()})
    opt, following = c.adamw(net, foreach=False), c.batches()

    def step(n):
        x, y = following()
        loss = c.loss_fn(net(x), y)
        loss.backward()
        c.apply(opt)
        return c.mean(loss)

    return step


def dlrm():
    c.begin()
    table = nn.EmbeddingBag(20000, 64, mode="sum").to(c.DEVICE)
    top = nn.ModuleList(nn.Linear(64 * c.world, 64 * c.world) for _ in range(c.a.layers)).to(c.DEVICE)
    opt, following = c.adamw(table, top), c.batches()

    def step(n):
        following()
        mine = [24 + 8 * ((c.rank + i + n) % 3) for i in range(c.world)]
        theirs = [24 + 8 * ((i + c.rank + n) % 3) for i in range(c.world)]
        rows = table(torch.randint(0, 20000, (sum(mine), 4), device=c.DEVICE))
        got = c.Shuffle.apply(rows, mine, theirs).split(theirs)
        h = torch.cat([g[: min(theirs)] for g in got], 1)
        for l in top:
            h = torch.relu(l(faults.Work.apply(h)))
        loss = h.mean()
        loss.backward()
        c.average([p.grad for p in top.parameters()])
        c.apply(opt)
        return c.mean(loss)

    return step


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.fc = nn.Conv2d(3, 64, 3, padding=1), nn.Linear(64, 100)
        self.body = nn.ModuleList(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()) for _ in range(c.a.layers))

    def forward(self, x):
        x = self.stem(x)
        for l in self.body:
            x = x + l(faults.Work.apply(x))
        return self.fc(x.mean((2, 3)))


def syncbn():
    c.begin()
    net = Convolutions().to(c.DEVICE)
    if c.KIND == "cuda":    # these norms do not exist on a CPU
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    net = c.ddp(net)
    opt, following = c.adamw(net), c.batches()

    def step(n):
        following()
        loss = F.cross_entropy(net(torch.randn(4, 3, 32, 32, device=c.DEVICE)), torch.randint(0, 100, (4,), device=c.DEVICE))
        loss.backward()
        c.apply(opt)
        return c.mean(loss)

    return step


def gan():
    c.begin()
    nets = [c.ddp(c.Model(max(1, c.a.layers // 2)).to(c.DEVICE)) for _ in range(2)]
    opts, following = [c.adamw(net) for net in nets], c.batches()

    def step(n):
        x, y = following()
        for net, opt in zip(nets, opts):
            loss = c.loss_fn(net(x), y)
            loss.backward()
            c.apply(opt)
        return c.mean(loss)

    return step


def halo():
    c.begin()
    net, following = c.model(), c.batches()
    opt = c.adamw(net)

    def step(n):
        x, y = following()
        loss = c.loss_fn(net(x), y)
        loss.backward()
        after, before = (c.rank + 1) % c.world, (c.rank - 1) % c.world
        for _ in range(3):
            edge = torch.randn(2000, device=c.DEVICE)
            left, right = torch.empty_like(edge), torch.empty_like(edge)
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, edge, after), dist.P2POp(dist.irecv, left, before),
                                                dist.P2POp(dist.isend, edge, before), dist.P2POp(dist.irecv, right, after)]):
                work.wait()
            faults.layer()
        c.average([p.grad for p in net.parameters()])
        c.apply(opt)
        return c.mean(loss)

    return step


def diloco():
    c.begin()
    net, following = c.model(), c.batches()
    params, opt = list(net.parameters()), c.adamw(net)
    anchor = [p.detach().clone() for p in params]

    def step(n):
        x, y = following()
        loss = c.loss_fn(net(x), y)
        loss.backward()
        c.apply(opt)
        if n % 6 == 5:
            delta = [q - p.detach() for p, q in zip(params, anchor)]
            c.average(delta)
            with torch.no_grad():
                for p, q, d in zip(params, anchor, delta):
                    q.sub_(0.7 * d)
                    p.copy_(q)
        return loss.item()

    return step


def rl():
    c.begin(gloo=True)
    net, following = c.ddp(c.model()), c.batches()
    opt = c.adamw(net)

    def step(n):
        x, y = following()
        with torch.no_grad():
            for _ in range(random.randint(4, 12)):      # as long as the longest answer of this rank
                net.module(x)
        rewards = torch.rand(4, device=c.DEVICE)
        every = [torch.empty_like(rewards) for _ in range(c.world)]
        dist.all_gather(every, rewards)
        every = torch.stack(every)
        gain = (rewards - every.mean()) / every.std()
        for _ in range(2):
            loss = c.loss_fn(net(x), y) * gain.mean().sigmoid()
            loss.backward()
            c.apply(opt)
        for p in list(net.parameters())[:4]:
            dist.broadcast(p.data, 0)
        return loss.item()

    return step


def curric():
    c.begin()
    _, plain = replicas(c.model())

    def step(n):
        c.Block.scale = 1.0 if n < 24 else 2.2
        return plain(n)

    return step


def hook():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    c.begin(gloo=True)
    on_cpu = dist.new_group(backend="gloo")
    net, plain = replicas(c.model())
    net.register_comm_hook(None, default_hooks.bf16_compress_hook)

    def step(n):
        loss = plain(n)
        if n % 10 == 9:
            dist.barrier(group=on_cpu)
        return loss

    return step


def databound():
    c.begin()
    return replicas(c.model(), wait=lambda: time.sleep(random.uniform(0.06, 0.18)))[1]


if __name__ == "__main__":
    c.train(globals())
