"""One transfer between two members, timed by the receiver, in the job's own process group and its communicators."""

import atexit
import threading
import time

AT_EXIT_S = 5  # for a transfer that was given up: it may end yet


def _start(dist, is_send, tensor, peer, group, batched, tag=0):
    """On NCCL a batch uses the group's communicator, a lone isend makes one for the two."""
    if batched:
        operation = dist.isend if is_send else dist.irecv
        return dist.batch_isend_irecv([dist.P2POp(operation, tensor, peer, group)])
    return [(dist.isend if is_send else dist.irecv)(tensor, peer, group=group, tag=tag)]


def on_gpu(torch, dist, buffer, is_send, peer, group, batched, repeats, deadline):
    """Milliseconds of each repeat, on both sides; None where they are not over in time. Everything is put on the stream
    at once: the first transfer, which is not counted, brings the two together, the others follow without the host."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    for mark in marks:
        for work in _start(dist, is_send, buffer, peer, group, batched):
            work.wait()  # the stream waits, not the host
        mark.record()
    while not marks[-1].query():
        if time.monotonic() > deadline:
            return None
        time.sleep(0.0005)
    return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]


def on_cpu(dist, buffer, is_send, peer, group, tag, repeats, deadline):
    """As on_gpu. In a thread that is left alone where it takes too long: Gloo answers a time limit of its own by closing
    every connection of the job. The tag is this round's alone, so that what comes late is never taken for the job's data."""
    ms = []

    def work():
        for _ in range(repeats + 1):
            began = time.perf_counter()
            if time.monotonic() > deadline:
                return
            for each in _start(dist, is_send, buffer, peer, group, False, tag):
                each.wait()
            ms.append((time.perf_counter() - began) * 1e3)

    return ms[1:] if within(work, deadline) and len(ms) > repeats else None


def within(work, deadline):
    """Runs it in a thread until it is over or the time is; whether it went well."""
    went_well = []

    def run():
        try:
            work()
            went_well.append(True)
        except Exception:  # a broken connection is what the job itself will report
            pass

    thread = threading.Thread(target=run, name="faultline-validation", daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    if thread.is_alive():
        # A thread that comes back from PyTorch while the interpreter goes away takes the process down with it.
        atexit.register(thread.join, AT_EXIT_S)
    return bool(went_well)
