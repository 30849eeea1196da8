"""Twelve more ways to train over several ranks, each from published practice. jobs-further.py FAMILY [options]

  moecap     experts on all ranks with a fixed capacity: what overflows is dropped; the dense part under DDP
  usp        attention's heads over 2 ranks by all-to-all, its tokens round a ring of 4
  offload    FSDP2 with parameters and optimizer in the host's memory
  powersgd   DDP that exchanges low-rank factors of the gradients
  lora       DDP over a frozen model: tiny gradients, one bucket
  muon       every rank makes the update of its share of the matrices and all gather them
  clip       contrastive: features of all ranks gathered with their gradients, then DDP
  hier       local steps, averaged in pairs, fours and all, ever more rarely
  gossip     decentralized: parameters averaged with one other rank, another one each iteration
  pserver    gradients reduced to the rank that keeps a layer, new parameters broadcast by it
  distill    teachers on half of the ranks send their answers to students on the other half
  actor      actors on half of the ranks, their critics on the other, groups of their own
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import common as c
import faults


class Capacity(nn.Module):
    """One expert a rank; each takes as many tokens from every rank as fit, the others keep what they had."""

    def __init__(self, d):
        super().__init__()
        self.router = nn.Linear(d, c.world, bias=False)
        self.expert = nn.Sequential(nn.Linear(d, 2 * d, bias=False), nn.SiLU(), nn.Linear(2 * d, d, bias=False))
        for p in self.expert.parameters():
            p.own = True

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weight, to = self.router(rows).softmax(-1).max(-1)
        room = max(1, 5 * len(rows) // (4 * c.world))
        place = F.one_hot(to, c.world).cumsum(0).gather(1, to[:, None])[:, 0] - 1
        kept = place < room
        slot = torch.where(kept, to * room + place, c.world * room)        # one slot more for what overflows
        sent = rows.new_zeros(c.world * room + 1, rows.shape[1]).index_copy(0, slot, rows)[:-1]
        y = c.Swap.apply(self.expert(c.Swap.apply(sent, None)), None)
        y = torch.cat([y, y.new_zeros(1, y.shape[1])])[slot]
        return (y * (weight * kept)[:, None]).view_as(x)


class MoeBlock(c.Block):
    def __init__(self, d):
        super().__init__(d)
        self.experts = Capacity(d)

    def feed(self, x):
        return super().feed(x) + self.experts(x)


def moecap():
    c.begin()
    net, following = c.model(block=MoeBlock), c.batches()
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
        net, [name for name, p in net.named_parameters() if hasattr(p, "own")])
    return plain(c.ddp(net), following)


def plain(net, following=None, loss_of=None):
    opt, following = c.adamw(net), following or c.batches()

    def step(n):
        x, y = following()
        loss = loss_of(net, x, y) if loss_of else c.loss_fn(net(x), y)
        loss.backward()
        c.apply(opt)
        return c.mean(loss)

    return step


def usp():
    c.begin()
    over = c.mesh((c.world // 2, 2), ("ring", "heads"))
    ring, heads = over["ring"].get_group(), over["heads"].get_group()

    def attend(q, k, v):
        b, t, d = q.shape
        x = torch.stack([q, k, v], 2).view(b, t, 3, 2, d // 2).permute(3, 0, 1, 2, 4)
        x = c.Swap.apply(x, heads).permute(1, 0, 2, 3, 4).reshape(b, 2 * t, 3, d // 2)
        q, kv, parts = x[:, :, 0].contiguous(), x[:, :, 1:].contiguous(), []
        for hop in range(dist.get_world_size(ring)):
            parts.append(kv)
            if hop + 1 < dist.get_world_size(ring):
                kv = c.Pass.apply(kv, ring)
        k, v = torch.cat(parts, 1).unbind(2)
        flat = lambda y: y.reshape(b, y.shape[1], -1, min(32, d // 2)).transpose(1, 2)
        y = F.scaled_dot_product_attention(flat(q), flat(k), flat(v)).transpose(1, 2).reshape(b, 2, t, d // 2)
        return c.Swap.apply(y.permute(1, 0, 2, 3), heads).permute(1, 2, 0, 3).reshape(b, t, d)

    c.Block.attend = staticmethod(attend)
    return plain(c.ddp(c.model()))


def offload():
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    c.begin(gloo=True)
    net, over = c.model(), c.mesh((c.world,), ("shard",))
    for l in net.layers:
        fully_shard(l, mesh=over, offload_policy=CPUOffloadPolicy())
    fully_shard(net, mesh=over, offload_policy=CPUOffloadPolicy())
    return plain(net)


def powersgd():
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    c.begin()
    net = c.ddp(c.model())
    net.register_comm_hook(powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=3), powerSGD_hook.powerSGD_hook)
    return plain(net)


class Adapted(nn.Module):
    """A frozen matrix beside a small one that learns."""

    def __init__(self, frozen):
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down, self.up = nn.Linear(frozen.in_features, 8, bias=False), nn.Linear(8, frozen.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x))


def lora():
    c.begin()
    net = c.model()
    net.requires_grad_(False)
    for l in net.layers:
        l.qkv, l.wo = Adapted(l.qkv), Adapted(l.wo)
    return plain(c.ddp(net.to(c.DEVICE)))


def muon():
    c.begin()
    net, following = c.model(), c.batches()
    matrices = [p for l in net.layers for p in l.parameters() if p.ndim == 2]
    others = [p for p in net.parameters() if not any(p is m for m in matrices)]
    opt = torch.optim.AdamW(others, lr=1e-4)

    def orthogonal(g):
        x = g / (g.norm() + 1e-7)
        for _ in range(5):
            s = x @ x.T
            x = 3.4445 * x + (-4.775 * s + 2.0315 * s @ s) @ x
        return x

    def step(n):
        x, y = following()
        loss = c.loss_fn(net(x), y)
        loss.backward()
        c.average([p.grad for p in net.parameters()])
        with torch.no_grad():
            for at in range(0, len(matrices), c.world):
                some = matrices[at: at + c.world]
                room = max(p.numel() for p in some)
                mine = torch.zeros(room, device=c.DEVICE)
                if c.rank < len(some):
                    update = orthogonal(some[c.rank].grad).flatten()
                    mine[: len(update)] = update
                every = torch.empty(c.world * room, device=c.DEVICE)
                dist.all_gather_into_tensor(every, mine)
                for p, update in zip(some, every.view(c.world, room)):
                    p.sub_(1e-4 * update[: p.numel()].view_as(p))
                    p.grad = None
        c.apply(opt)
        return c.mean(loss)

    return step


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.new_empty(c.world * x.shape[0], *x.shape[1:])
        dist.all_gather_into_tensor(y, x.contiguous())
        return y

    @staticmethod
    def backward(ctx, g):
        mine = g.new_empty(g.shape[0] // c.world, *g.shape[1:])
        dist.reduce_scatter_tensor(mine, g.contiguous())
        return mine


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.images, self.texts = (c.Model(max(1, c.a.layers // 2), last=False) for _ in range(2))

    def forward(self, x, y):
        return F.normalize(self.images(x).mean(1), dim=-1), F.normalize(self.texts(y).mean(1), dim=-1)


def clip():
    c.begin()

    def contrast(net, x, y):
        one, two = net(x, y)
        same = torch.arange(len(one), device=c.DEVICE) + c.rank * len(one)
        return (F.cross_entropy(10 * one @ Gather.apply(two).T, same) + F.cross_entropy(10 * two @ Gather.apply(one).T, same)) / 2

    return plain(c.ddp(Towers().to(c.DEVICE)), c.batches(8), contrast)


def hier():
    c.begin()
    levels = []
    for size, every in ((2, 2), (4, 4), (c.world, 8)):
        groups = [dist.new_group(list(range(at, min(at + size, c.world)))) for at in range(0, c.world, size)]
        levels.append((every, groups[c.rank // size]))
    net, following = c.model(), c.batches()
    opt = c.adamw(net)

    def step(n):
        x, y = following()
        loss = c.loss_fn(net(x), y)
        loss.backward()
        c.apply(opt)
        due = [group for every, group in levels if (n + 1) % every == 0]
        if due:
            c.average([p.data for p in net.parameters()], due[-1])
        return loss.item()

    return step


def gossip():
    c.begin()
    net, following = c.model(), c.batches()
    opt = c.adamw(net)
    hops = [1 << i for i in range(max(1, (c.world - 1).bit_length()))]

    def step(n):
        x, y = following()
        loss = c.loss_fn(net(x), y)
        loss.backward()
        c.apply(opt)
        hop = hops[n % len(hops)]
        flat = torch._utils._flatten_dense_tensors([p.data for p in net.parameters()])
        got = torch.empty_like(flat)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, flat, (c.rank + hop) % c.world),
                                            dist.P2POp(dist.irecv, got, (c.rank - hop) % c.world)]):
            work.wait()
        params = [p.data for p in net.parameters()]
        for p, new in zip(params, torch._utils._unflatten_dense_tensors((flat + got) / 2, params)):
            p.copy_(new)
        return loss.item()

    return step


def pserver():
    c.begin()
    net, following = c.model(), c.batches()
    layers = [list(l.parameters()) for l in net.layers] + [list(net.out.parameters()), list(net.tok.parameters())]
    opts = [torch.optim.AdamW(params, lr=1e-4) for params in layers]

    def step(n):
        x, y = following()
        loss = c.loss_fn(net(x), y)
        loss.backward()
        for i, params in enumerate(layers):
            keeper = i % c.world
            flat = torch._utils._flatten_dense_tensors([p.grad for p in params])
            dist.reduce(flat, keeper)
            if c.rank == keeper:
                for p, g in zip(params, torch._utils._unflatten_dense_tensors(flat / c.world, params)):
                    p.grad = g
                opts[i].step()
        for i, params in enumerate(layers):
            flat = torch._utils._flatten_dense_tensors([p.data for p in params])
            dist.broadcast(flat, i % c.world)
            for p, new in zip(params, torch._utils._unflatten_dense_tensors(flat, params)):
                p.data.copy_(new)
                p.grad = None
        return c.mean(loss)

    return step


def halves():
    """This rank's half, whether it is the second one, and its partner in the other half."""
    half = c.world // 2
    groups = [dist.new_group(list(range(half))), dist.new_group(list(range(half, c.world)))]
    second = c.rank >= half
    return groups[second], second, (c.rank + half) % c.world


def distill():
    c.begin()
    group, student, other = halves()
    following = c.batches()
    shape = (2, c.a.seq, c.VOCAB)
    if student:
        net = c.ddp(c.Model(max(1, c.a.layers // 2)).to(c.DEVICE), group)
        opt = c.adamw(net)
    else:
        net = c.model()

    def step(n):
        x, y = following()
        if not student:
            with torch.no_grad():
                answers = net(x)
            ids = torch.cat([x, y[:, -1:]], 1)
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, ids, other), dist.P2POp(dist.isend, answers.bfloat16(), other)]):
                work.wait()
            total = torch.zeros((), device=c.DEVICE)
            dist.all_reduce(total, group=group)      # teachers keep together, as one model over several GPUs does
            return total.item()
        ids = torch.empty((2, c.a.seq + 1), dtype=torch.long, device=c.DEVICE)
        answers = torch.empty(shape, dtype=torch.bfloat16, device=c.DEVICE)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, ids, other), dist.P2POp(dist.irecv, answers, other)]):
            work.wait()
        said = net(ids[:, :-1])
        loss = c.loss_fn(said, ids[:, 1:]) + F.kl_div(said.log_softmax(-1), answers.float().softmax(-1), reduction="batchmean") / c.a.seq
        loss.backward()
        c.apply(opt)
        total = loss.detach().clone()
        dist.all_reduce(total, group=group)
        return total.item() / dist.get_world_size(group)

    return step


def actor():
    c.begin()
    group, critic, other = halves()
    net, following = c.ddp(c.model(), group), c.batches()
    opt = c.adamw(net)

    def step(n):
        x, y = following()
        if critic:
            ids = torch.empty((2, c.a.seq + 1), dtype=torch.long, device=c.DEVICE)
            dist.recv(ids, other)
            values = net(ids[:, :-1]).float().mean((1, 2))
            dist.send(values.detach().contiguous(), other)
            loss = ((values - 1) ** 2).mean()
        else:
            with torch.no_grad():
                for _ in range(2):
                    net.module(x)
            dist.send(torch.cat([x, y[:, -1:]], 1), other)
            values = torch.empty(2, device=c.DEVICE)
            dist.recv(values, other)
            loss = c.loss_fn(net(x), y) * values.mean().sigmoid()
        loss.backward()
        c.apply(opt)
        return c.mean(loss)

    return step


if __name__ == "__main__":
    c.train(globals())
