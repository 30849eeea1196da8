"""Faults to order in one rank of a training job, and what the job reports about itself.

A job calls `begin()` and `end()` around an iteration and `layer()` in every layer; for a program that knows nothing of this
file, `attach()` does it from outside, with PyTorch's global hooks.

FAULT=KIND:RANK:FROM[-TO]:SEVERITY[,...]   FROM counts iterations from 0, and TO is the first without it; SEVERITY is
                                      milliseconds a call ("2.5"), or a share of the iteration's own time ("40%"), which
                                      the job measures before the fault begins
  crawl:  compute (GPU time in every layer)  cpu (busy Python in every layer)  data (the loader waits)
  stand:  hang  stop  gpuhang  early (leaves the loop)  extra, skip (one collective more, one fewer)
  end:    raise  badfile  oom  kill  nan
BASE_MS=1.5    GPU time of a layer in good health
DUMP=45        every rank dumps its recorder after that many iterations, as dump_RANK
EARLY=24       the same, into early/: a recording of the time before the fault
PARTS=NAME:FROM:TO[,...]   what was recorded in iterations FROM to TO-1 alone, into NAME/: several recordings of one job
"""
import json, os, pickle, random, signal, statistics, threading, time

import torch

CYCLES_PER_MS = 1.9e6
rank = int(os.environ.get("RANK", "0"))
out = os.environ.get("JOB_OUT", ".")
base_ms = float(os.environ.get("BASE_MS", "1.5"))
dump_at = int(os.environ.get("DUMP", "0"))
early_at = int(os.environ.get("EARLY", "0"))

step = 0
times = []
_calls = {"forward": 0, "backward": 0}
_per_step = {"forward": 8, "backward": 8}
_began = time.time()
_amounts = {}


def _parse(text):
    for one in filter(None, text.split(",")):
        kind, who, when, severity = one.split(":")
        start, _, end = when.partition("-")
        yield kind, int(who), int(start), int(end or 1 << 60), severity


def _parse_parts(text):
    for one in filter(None, text.split(",")):
        name, start, end = one.split(":")
        yield name, int(start), int(end)


_parts = list(_parse_parts(os.environ.get("PARTS", "")))
_part_began = {}
_mine = [f for f in _parse(os.environ.get("FAULT", "")) if f[1] in (rank, -1)]


def amount(kind):
    """Milliseconds of a fault for one call (or 1 for a fault without a size); 0 when it is not due."""
    for k, _, start, end, severity in _mine:
        if k != kind or not start <= step < end:
            continue
        if not severity.endswith("%"):
            return float(severity)
        if (kind, start) not in _amounts:
            recent = statistics.median(times[-12:]) * 1e3
            calls = {"compute": _per_step["forward"] + _per_step["backward"], "cpu": _per_step["forward"], "data": 1}[kind]
            _amounts[kind, start] = float(severity[:-1]) / 100 * recent / max(1, calls)
        return _amounts[kind, start]
    return 0.0


def due(kind):
    return any(k == kind and step == start for k, _, start, _, _ in _mine)


def last_step(steps):
    """How many iterations this rank makes: fewer when it is to leave early."""
    return next((start for k, _, start, _, _ in _mine if k == "early"), steps)


def spin(ms):
    if ms > 0 and torch.cuda.is_initialized():
        torch.cuda._sleep(int(CYCLES_PER_MS * ms))
    elif ms > 0:      # a rehearsal without a GPU
        time.sleep(ms / 1e3)


def busy(ms):
    until = time.perf_counter() + ms / 1e3
    while time.perf_counter() < until:
        pass


def layer(backward=False, scale=1.0):
    """A layer's GPU time, and whatever is wrong with this rank."""
    _calls["backward" if backward else "forward"] += 1
    spin(base_ms * scale * random.uniform(0.97, 1.03) + amount("compute"))
    if backward:
        return
    busy(amount("cpu"))
    if amount("hang"):
        time.sleep(3600)
    if amount("gpuhang"):
        torch.cuda._sleep(1 << 62)
    if amount("raise"):
        raise ValueError("Expected input batch_size (16) to match target batch_size (8).")
    if amount("oom"):
        kept = []
        while True:
            kept.append(torch.empty(4 << 30, device="cuda", dtype=torch.uint8))


def fetch():
    """What the data loader does before it hands out a batch."""
    ms = amount("data")
    if ms:
        time.sleep(ms / 1e3)
    if due("badfile"):
        raise OSError(5, "Input/output error", "/data/train/shard-00017.bin")


def begin():
    global _began
    _began = time.time()
    for name, start, _ in _parts:
        if step == start:
            _part_began[name] = time.time_ns(), os.fstat(1).st_size
    if due("kill"):
        threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGKILL)).start()
    if due("stop"):
        threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGSTOP)).start()


def end():
    global step, _per_step
    times.append(time.time() - _began)
    step += 1
    _per_step = dict(_calls)
    _calls.update(forward=0, backward=0)
    if step in (dump_at, early_at):
        _dump(f"{out}/dump_{rank}" if step == dump_at else f"{out}/early/dump_{rank}")
    for name, start, end in _parts:
        if step == end and name in _part_began:
            _save_part(name, start, end)
    if step % 5 == 0 or step == dump_at:
        save_times()


def save_times():
    with open(f"{out}/times.rank{rank}.json", "w") as f:
        json.dump(times, f)


def _save_part(name, start, end):
    """A recording as if the job had begun, and been dumped, with the part; what each rank logged in it lies beside."""
    since, begun = _part_began[name]
    folder = f"{out}/{name}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/part.rank{rank}.json", "w") as f:
        json.dump({"start": start, "end": end, "log": [begun, os.fstat(1).st_size]}, f)
    with open(f"{folder}/times.rank{rank}.json", "w") as f:
        json.dump(times[start:end], f)
    _dump(f"{folder}/dump_{rank}", since)


def _dump(path, since_ns=0):
    if not hasattr(torch._C._distributed_c10d, "_dump_nccl_trace"):      # a rehearsal without NCCL
        data = pickle.dumps({"version": "2.10", "entries": []}, protocol=2)
    else:
        data = torch._C._distributed_c10d._dump_nccl_trace(True, os.environ.get("DUMP_STACKS", "1") == "1", False)
    if since_ns:
        whole = pickle.loads(data)
        whole["entries"] = [e for e in whole["entries"] if e["time_created_ns"] >= since_ns]
        data = pickle.dumps(whole, protocol=2)
    with open(path + ".part", "wb") as f:
        f.write(data)
    os.rename(path + ".part", path)


class Work(torch.autograd.Function):
    """GPU time in both passes."""

    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.scale = scale
        layer(scale=scale)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        layer(backward=True, scale=ctx.scale)
        return g, None


def attach(layers):
    """Watches a program from outside: the named layer classes, the first optimizer's steps, every data loader."""
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.utils.data import dataloader

    def before_layer(module, args):
        if type(module).__name__.removeprefix("FSDP") in layers and torch.is_grad_enabled():
            layer()

    first = []

    def after_step(optimizer, args, kwargs):
        if not first:
            first.append(optimizer)
        if optimizer is first[0]:
            end()
            begin()

    plain_next = dataloader._BaseDataLoaderIter.__next__

    def next_batch(self):
        fetch()
        return plain_next(self)

    dataloader._BaseDataLoaderIter.__next__ = next_batch
    torch.nn.modules.module.register_module_forward_pre_hook(before_layer)
    register_optimizer_step_post_hook(after_step)


def short_timeout(seconds):
    """Makes every process group give up after so many seconds, whatever the program asks for."""
    from datetime import timedelta
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    limit = c10d.default_pg_nccl_timeout = timedelta(seconds=seconds)
    for name in ("init_process_group", "new_group"):
        plain = getattr(c10d, name)

        def patched(*args, _plain=plain, **kwargs):
            if not any(isinstance(a, timedelta) for a in args):
                kwargs["timeout"] = limit
            return _plain(*args, **kwargs)

        setattr(c10d, name, patched)
        setattr(dist, name, patched)
