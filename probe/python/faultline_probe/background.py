"""The probe's own thread: signs of life, requests for stacks, hangs."""

import signal
import statistics
import sys
import threading
import time

from . import ring as ring_file
from . import settings
from .stacks import Stacks

_LOOK_EVERY_S = 0.2
_BEAT_EVERY_S = 1.0
_TOUCH_EVERY_S = 3600.0
_HANG_S = 120.0
_ITERATIONS_OF_A_HANG = 10


def start(probe, ring):
    """The stacks' file and the thread that lives as long as the ring is the process' own."""
    stacks = Stacks(ring, probe.rank_text)
    thread = threading.Thread(target=_run, args=(probe, ring, stacks), name="faultline", daemon=True)
    # The new thread takes over the mask: no signal of the job's is ever delivered to it. A fault where SIGBUS is blocked
    # would kill past the handler that saves us from a truncated ring.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.valid_signals()) - {signal.SIGBUS})
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return stacks


def _run(probe, ring, stacks):
    # Our own sleeps are no calls of the job.
    sys.setprofile(None)
    watch = _Hang(probe, ring)
    is_watching_gil = not settings.is_off("FAULTLINE_WATCHDOG")
    beat_at = touch_at = gil_at = 0.0
    touch_at = time.monotonic() + _TOUCH_EVERY_S
    while probe.ring is ring:
        try:
            now = time.monotonic()
            if now >= beat_at:
                beat_at = now + _BEAT_EVERY_S
                ring.beat()
                stacks.look_after()
                probe.look_around(ring)
            wanted = ring.get(ring_file.STACKS_WANTED)
            if wanted != ring.get(ring_file.STACKS_ANSWERED):
                stacks.write(True)
                ring.put(ring_file.STACKS_ANSWERED, wanted)
            if watch.has_moved(now):
                stacks.forget_hang()
            elif watch.is_new_hang(now):
                stacks.write(False)
            # Not before there were calls: while a big library is loaded, Python stands still too.
            if is_watching_gil and now >= gil_at and watch.has_begun():
                limit = watch.limit_s()
                gil_at = now + max(_BEAT_EVERY_S, limit / 10)
                stacks.watch_gil(limit)
            if now >= touch_at:
                touch_at = now + _TOUCH_EVERY_S
                ring.touch()
        except Exception as error:
            probe.give_up(error)
            return
        time.sleep(_LOOK_EVERY_S)


class _Hang:
    """No traced call and no iteration for long, after there were some: once for each such stop."""

    def __init__(self, probe, ring):
        self._probe = probe
        self._ring = ring
        self._seen = None
        self._since = time.monotonic()
        self._is_said = False
        self._least_s = settings.number("FAULTLINE_HANG_S", _HANG_S)

    def limit_s(self):
        durations = self._probe.iteration_durations_ns()
        return max(self._least_s, _ITERATIONS_OF_A_HANG * statistics.median(durations) / 1e9 if durations else 0.0)

    def has_begun(self):
        return bool(self._seen)

    def has_moved(self, now):
        """Since the last look."""
        seen = self._probe.progress(self._ring)
        if seen == self._seen:
            return False
        self._seen, self._since, self._is_said = seen, now, False
        return True

    def is_new_hang(self, now):
        if not self._seen or self._is_said or now - self._since < self.limit_s():
            return False
        self._is_said = True
        return True
