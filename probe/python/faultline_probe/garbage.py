"""Garbage collections, through gc.callbacks (a stall that no profiler of kernels shows: FLARE §5.2.2)."""

import _thread
import gc
from time import monotonic_ns  # bound now: jobs and tests put clocks of their own into `time`

from . import ring as ring_file
from . import settings

# Young collections come thousands of times a second and take microseconds. They share a record until they make this much
# together, so that they push nothing else out of the ring and no time is lost: it reads as one collection of that length.
_WORTH_A_RECORD_NS = 200_000


def watch(append):
    """`append(kind, function, a, b, c, issued, ended, d, e)` for each collection. Returns what stops it."""
    began = spent = generation = collected = uncollectable = 0

    def on_collection(phase, info):
        try:
            note(phase, info)
        except KeyboardInterrupt:
            # Python shows what a callback raises and goes on; Ctrl-C is meant for the job.
            _thread.interrupt_main()
        except Exception as error:
            # Python would show it after every collection.
            stop()
            settings.say(f"collections are no longer noted: {type(error).__name__}: {error}"[:300])

    def note(phase, info):
        # Callbacks come in pairs, and no collection begins within another.
        nonlocal began, spent, generation, collected, uncollectable
        if phase == "start":
            began = monotonic_ns()
            return
        if began == 0:
            return
        now = monotonic_ns()
        spent += now - began
        began = 0
        generation = max(generation, info["generation"])
        collected += info["collected"]
        uncollectable += info["uncollectable"]
        if spent < _WORTH_A_RECORD_NS:
            return
        append(ring_file.GARBAGE_COLLECTION, generation, collected, uncollectable, 0, now - spent, now, 0, 0)
        spent = generation = collected = uncollectable = 0

    gc.callbacks.append(on_collection)

    def stop():
        if on_collection in gc.callbacks:
            gc.callbacks.remove(on_collection)

    return stop
