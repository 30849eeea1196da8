"""Tests the GPUs and links of a job from inside, at the end of an iteration (Greyhound, sections 4.3 and 6).

    report = run({"atIteration": 120, "gemm": True, "ring": True, "tree": True, "repeats": 3, "mb": 16})

Every member of the group calls it with the same request at the same iteration. A report holds the rank's own matrix
products and the transfers it *received*; `faultline diagnose` compares the reports and names the slow GPU or link.

The job's context, process group and communicators are used as they are. It never waits longer than `limitS` (60) for
others: whatever is not done by then is left out. Random numbers, gradient mode and current stream stay as they are; at
most 512 MiB or a tenth of the free memory is used and given back.
"""

import os
import socket
import time
import zlib

from . import validation_gemm, validation_transfer
from .validation_meeting import Meeting
from .validation_plan import passes_rail, passes_ring, passes_tree, rounds

__all__ = ["run", "passes_rail", "passes_ring", "passes_tree", "SCHEMA"]

SCHEMA = "faultline.validation/1"
_MOST_BYTES = 512 << 20
_DEFAULT_MB = {"cuda": (16, 32, 64), "cpu": (1, 2, 4)}
# What a transfer that was given up may still write into.
_unfinished = []


def run(request):
    """The report. Never raises: what went wrong is its "remark"."""
    began = time.monotonic()
    iteration = request.get("atIteration", request.get("iteration"))
    rank = int(os.environ.get("RANK", "0"))
    report = {"schema": SCHEMA, "rank": rank, "host": (os.environ.get("NCCL_HOSTID") or socket.gethostname())[:64],
              "device": "cpu", "iteration": iteration, "timeMs": int(time.time() * 1e3), "group": [rank],
              "gemm": [], "transfers": []}
    try:
        import torch  # there already in a job that trains with it
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            report["remark"] = "a CUDA graph was being captured"
        else:
            _test(torch, request, report)
    except Exception as error:
        report["remark"] = f"{type(error).__name__}: {error}"[:500]
    report["tookMs"] = round((time.monotonic() - began) * 1e3, 3)  # what it cost the job
    return report


def _ranks(words):
    """A list of ranks, or "0-248/8,5": runs of equal steps, as the agent writes them into the ring's header."""
    if not isinstance(words, str):
        return words
    ranks = []
    for run in words.split(","):
        first, _, rest = run.partition("-")
        last, _, step = rest.partition("/")
        ranks.extend(range(int(first), int(last or first) + 1, int(step or 1)))
    return ranks


class _Group:
    """Who takes part. `handle` is a process group of exactly these; without one, communicators of two are used."""

    def __init__(self, dist, wanted):
        self.handle, self.is_exact, self.store = None, True, None
        self.backend = ""
        if dist is None:
            self.ranks, self.place = [int(os.environ.get("RANK", "0"))], 0
            return
        c10d = dist.distributed_c10d
        rank, self.ranks = dist.get_rank(), list(range(dist.get_world_size()))
        if wanted and sorted(set(wanted)) != self.ranks:
            self.ranks = sorted(set(wanted))
            if rank in self.ranks:
                self._find(c10d)
        self.place = self.ranks.index(rank) if rank in self.ranks else -1
        self.store = c10d._get_default_store()
        if self.place >= 0:
            # "cpu:gloo,cuda:nccl" where a group has two.
            config = getattr(dist, "get_backend_config", dist.get_backend)
            self.backend = str(config(self.handle))

    def _find(self, c10d):
        world = getattr(c10d, "_world", None)
        known = world.pg_group_ranks if world is not None else getattr(c10d, "_pg_group_ranks", {})
        for handle, places in known.items():
            if sorted(places) == self.ranks:
                self.handle, self.ranks = handle, sorted(places, key=places.get)
                return
        self.is_exact = False


def _distributed(torch):
    dist = getattr(torch, "distributed", None)
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None


def _free_bytes(torch, device):
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _test(torch, request, report):
    dist = _distributed(torch)
    group = _Group(dist, _ranks(request.get("ranks")))
    if dist is not None:
        report["rank"] = dist.get_rank()
    report["group"] = group.ranks
    if group.place < 0:
        return
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", torch.cuda.current_device()) if has_gpu else torch.device("cpu")
    report["device"] = torch.cuda.get_device_name(device) if has_gpu else "cpu"
    deadline = time.monotonic() + float(request.get("limitS", 60))
    name = f"validation/{report['iteration']}/{'-'.join(map(str, group.ranks)) if not group.is_exact or group.handle else 'all'}"
    meeting = Meeting(group.store, name, len(group.ranks), group.place, deadline)
    repeats = max(1, min(100, int(request.get("repeats", 3))))
    if has_gpu:
        torch.cuda.synchronize(device)
    try:
        # Autocast would change the types of the products.
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            if request.get("gemm", True):
                _gemm(torch, device, meeting, repeats, report)
            topologies = [topology for topology in ("ring", "tree") if request.get(topology, True)]
            # Members of each machine, where there are several.
            if request.get("stride", 1) > 1:
                topologies.append("rail")
            if dist is not None and topologies and len(group.ranks) > 1:
                _links(torch, dist, group, device, meeting, topologies, request, repeats, deadline, report)
    except Exception:
        meeting.together(False)  # the others need not wait for this one
        raise
    finally:
        # Giving memory back waits for the GPU, so not while a transfer that may never end is on it.
        if has_gpu and not _unfinished:
            torch.cuda.empty_cache()
    if meeting.is_over:
        report.setdefault("remark", "stopped before the end: a member did not come in time, or the time was up")


def _most_bytes(torch, device):
    return min(_MOST_BYTES, _free_bytes(torch, device) // 10)


def _gemm(torch, device, meeting, repeats, report):
    # The first member finds the sizes out; all take the same.
    words = meeting.share("gemm", lambda: _words(validation_gemm.plan(torch, device, _most_bytes(torch, device))))
    if words and meeting.together():
        report["gemm"] = validation_gemm.measure(torch, device, _plan(words), repeats)


def _words(plan):
    return ";".join(f"{name} {side} {count}" for name, (side, count) in plan.items())


def _plan(words):
    return {name: (int(side), int(count)) for name, side, count in (each.split() for each in words.split(";"))}


def _links(torch, dist, group, device, meeting, topologies, request, repeats, deadline, report):
    use_gpu = device.type == "cuda" and ("nccl" in group.backend or "ucc" in group.backend)
    where = device if use_gpu else torch.device("cpu")
    asked = request.get("mb") or _DEFAULT_MB[where.type]
    most = _most_bytes(torch, where) >> 20
    sizes = [mb for mb in (asked if isinstance(asked, (list, tuple)) else [asked]) if mb <= most]
    # All must do the same rounds, also one with little memory left: the first member's word counts, who cannot says so.
    words = meeting.share("sizes", lambda: " ".join(map(str, sizes)))
    sizes = [float(word) for word in (words or "").split()]
    if not sizes or not meeting.together(max(sizes) <= most):
        return
    buffer = torch.zeros(int(max(sizes) * (1 << 20)), dtype=torch.uint8, device=where)
    token = torch.zeros(1, device=where)

    def align():
        """All are there: a collective of the group brings them to the same moment, and makes its communicator on NCCL."""
        work = dist.all_reduce(token, group=group.handle, async_op=True)
        return work.wait() if use_gpu else validation_transfer.within(work.wait, deadline)

    for topology, number, transfers, size in rounds(len(group.ranks), topologies, sizes, request.get("stride", 1)):
        if not meeting.together(time.monotonic() < deadline):
            return
        if group.is_exact:
            align()
        mine = [pair for pair in transfers if group.place in pair]
        if not mine:
            continue
        sender, receiver = (group.ranks[place] for place in mine[0])
        is_send = sender == report["rank"]
        peer, data = receiver if is_send else sender, buffer[:size]
        if use_gpu:
            ms = validation_transfer.on_gpu(torch, dist, data, is_send, peer, group.handle, group.is_exact, repeats, deadline)
        else:
            tag = zlib.crc32(f"{meeting.name} {topology} {number} {size}".encode()) >> 2
            ms = validation_transfer.on_cpu(dist, data, is_send, peer, group.handle, tag, repeats, deadline)
        if ms is None:
            _unfinished.append(buffer)
            meeting.together(False)
            report["remark"] = f"the transfer {sender} -> {receiver} of {size} bytes was not over in time"
            return
        if not is_send:
            report["transfers"].append({"topology": topology, "pass": number, "from": sender, "to": receiver, "bytes": size,
                                        "ms": [round(value, 6) for value in ms]})
