"""Calls of every kind, for the ring: which are recorded, and how they end."""

import gc
import sys
import threading

import faultline_probe
import traced_work


def quietly(function, *args):
    try:
        return function(*args)
    except (ValueError, StopIteration):
        return None


assert traced_work.plain(1) == 2
assert traced_work.outer(1) == 3
assert traced_work.recursive(3) == 3
quietly(traced_work.failing)
quietly(traced_work.through)
assert list(traced_work.counting(2)) == [0, 1]
assert traced_work.decorated(5) == 5
assert traced_work.Thing().method() == 7
assert traced_work.Thing.static() == 8
assert traced_work.Thing.of_class() == 9
traced_work.untraced(1)
thread = threading.Thread(target=traced_work.plain, args=(10,))
thread.start()
thread.join()
for _ in range(3):
    faultline_probe.iteration()
faultline_probe.iteration(41)
faultline_probe.iteration()
gc.collect()
print("done", sys.getprofile() is None)
