"""How calls of traced functions are seen: sys.monitoring from Python 3.12 on, a profile function before.

Either way the traced code stays as it is, and functions that are not traced pay little: nothing with sys.monitoring, which
changes the bytecode of the traced ones alone; one look into a small table with a profile function in C.
"""

import sys
import threading

from .calls import Calls

# Numbers that no kind of tool has by convention come first (PEP 669).
_TOOL_IDS = (4, 3, 2, 5, 1)


class Hook:
    """`source` says in the ring's header how calls are seen; `trace` follows one more code object."""

    def __init__(self, native, wake, ring_now):
        self._native = native
        self._tool = None
        self._calls = None if native else Calls(lambda: ring_now() or wake())
        self._callbacks = None
        if native:
            native.set_ring(None, wake)
        self.source = self._install_monitoring() or self._install_profile()

    def trace(self, code, name, is_recorded, on_return=None):
        if not (self._native or self._calls).trace(code, name, is_recorded, on_return):
            return False
        if self._tool is not None:
            events = sys.monitoring.events
            # A generator's calls go from each start or resumption to the next value.
            sys.monitoring.set_local_events(
                self._tool, code, events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD)
        return True

    def renew(self):
        """Takes the thread's profile function back after a profiler that had it."""
        if self._tool is None and sys.getprofile() is None:
            self._profile_this_thread()

    def _install_monitoring(self):
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            return None
        for tool in _TOOL_IDS:
            try:
                monitoring.use_tool_id(tool, "faultline")
            except ValueError:
                continue
            events = monitoring.events
            if self._native:
                start, finish, unwind = (self._native.callback(which) for which in range(3))
            else:
                start, finish, unwind = self._calls.on_start, self._calls.on_return, self._calls.on_unwind
            self._callbacks = (start, finish, unwind)
            monitoring.register_callback(tool, events.PY_START, start)
            monitoring.register_callback(tool, events.PY_RESUME, start)
            monitoring.register_callback(tool, events.PY_RETURN, finish)
            monitoring.register_callback(tool, events.PY_YIELD, finish)
            monitoring.register_callback(tool, events.PY_UNWIND, unwind)
            # A loader's last __next__ ends by StopIteration; this event exists for all functions or none.
            monitoring.set_events(tool, events.PY_UNWIND)
            self._tool = tool
            return "python monitoring" + (" c" if self._native else "")
        return None

    def _install_profile(self):
        if sys.getprofile() is not None:
            return "python, no hook: a profiler is on"
        self._profile_this_thread()
        threading.setprofile(self._profile_new_thread)
        return "python profile c" if self._native else "python setprofile (slow)"

    def _profile_this_thread(self):
        if self._native:
            self._native.profile(True)
        else:
            sys.setprofile(self._calls.profile)

    def _profile_new_thread(self, _frame, _event, _value):
        # threading makes this the profile function of each thread that it starts; the first event puts the real one there.
        self._profile_this_thread()
