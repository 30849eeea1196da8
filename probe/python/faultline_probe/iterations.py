"""Where iterations end, and what is done there: samples of the GPU's memory, profiles and validation on request.

By itself the probe takes the end of the first optimizer's step for the end of an iteration; a job that knows better calls
faultline_probe.iteration().
"""

import sys
import time
import weakref
from collections import deque

from . import ring as ring_file
from .requests import Requests

_MEMORY_EVERY_NS = 10**9
_MIB = 1 << 20
# Of other optimizers, after which the first is taken for one that is no longer used.
_MOST_OTHER_STEPS = 100


class Iterations:
    def __init__(self, probe):
        self._probe = probe
        self._optimizer = None
        self._other_steps = 0
        self._is_told = False
        self._memory_ns = 0
        self._requests = Requests(probe)
        self.number = 0
        self.ended_ns = 0
        self.durations_ns = deque(maxlen=64)

    def on_step(self, frame):
        """A step of some optimizer has ended; the frame is that of PyTorch's wrapper around it."""
        try:
            if not self._is_told:
                optimizer = _optimizer_of(frame)
                # A job may have several, and step them all in each iteration: the first counts, as long as it steps.
                first = self._optimizer and self._optimizer()
                self._other_steps = 0 if optimizer is first else self._other_steps + 1
                if first is None or self._other_steps > _MOST_OTHER_STEPS:
                    self._optimizer, self._other_steps = weakref.ref(optimizer), 0
                if self._other_steps == 0:
                    self._end(self.number + 1)
        except Exception as error:
            self._probe.give_up(error)

    def on_told(self, number):
        self._is_told = True
        self._end(self.number + 1 if number is None else int(number))

    def _end(self, number):
        ring = self._probe.ring or self._probe.wake()
        if ring is None:
            return
        now = time.monotonic_ns()
        # The first one begins with the ring: it has the job's warm-up in it.
        began = self.ended_ns or ring.made_ns
        if self.ended_ns:
            self.durations_ns.append(now - began)
        self._probe.append(ring_file.ITERATION, 0, number, 0, 0, began, now, 0, 0)
        self.number, self.ended_ns = number, now
        if now - self._memory_ns >= _MEMORY_EVERY_NS:
            self._memory_ns = now
            self._sample_memory(ring, now)
        self._requests.at_iteration(ring, number)

    def _sample_memory(self, ring, now):
        # Here and not in a thread of ours: this thread has the right device, and cannot meet itself at the allocator's lock.
        cuda = sys.modules.get("torch.cuda")
        if cuda is None or not cuda.is_initialized():
            return
        device = cuda.current_device()
        ring.put(ring_file.GPU, device)
        stats = cuda.memory_stats(device)
        self._probe.append(
            ring_file.MEMORY, 0, stats.get("allocated_bytes.all.current", 0), stats.get("num_alloc_retries", 0),
            stats.get("num_ooms", 0), now, now, stats.get("reserved_bytes.all.current", 0) // _MIB,
            stats.get("allocated_bytes.all.peak", 0) // _MIB)
        self._probe.count_quiet()


def _optimizer_of(frame):
    """The wrapper of PyTorch's Optimizer takes (*args, **kwargs); the first is the optimizer."""
    values = frame.f_locals.get("args")
    return values[0] if values else frame.f_locals.get("self")
