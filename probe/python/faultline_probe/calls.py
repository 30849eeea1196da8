"""What pyhook.c does, in Python, for where the library is missing: traced calls become records, open ones included."""

import threading
import time

from . import ring as ring_file

_DEEPEST = 64


class Calls:
    def __init__(self, ring_of_call):
        self._ring_of_call = ring_of_call
        self._traced = {}
        self._thread = threading.local()

    def trace(self, code, name, is_recorded, on_return):
        if code in self._traced:
            old_name, was_recorded, old_return = self._traced[code]
            name = old_name if was_recorded else name
            is_recorded, on_return = is_recorded or was_recorded, on_return or old_return
        self._traced[code] = (name, is_recorded, on_return)
        return True

    # sys.setprofile

    def profile(self, frame, event, value):
        if event == "call" and frame.f_code in self._traced:
            self.on_start(frame.f_code, 0)
        elif event == "return" and frame.f_code in self._traced:
            # An exception shows itself as None, as does a function that returns nothing.
            self.on_return(frame.f_code, 0, value)

    # sys.monitoring

    def on_start(self, code, _offset):
        traced = self._traced.get(code)
        if traced is None or not traced[1]:
            return
        ring = self._ring_of_call()
        if ring is None:
            return
        stack = self._thread.__dict__.setdefault("stack", [])
        if len(stack) >= _DEEPEST:
            ticket = None
        else:
            ticket = ring.append(ring_file.PYTHON_CALL, group=traced[0], a=threading.get_native_id(), b=len(stack),
                                 issued=time.monotonic_ns())
        stack.append((code, ring, ticket))

    def on_return(self, code, _offset, _value):
        self._finish(code, False)

    def on_unwind(self, code, _offset, _exception):
        if code in self._traced:
            self._finish(code, True)

    def _finish(self, code, failed):
        traced = self._traced.get(code)
        if traced is None:
            return
        stack = self._thread.__dict__.get("stack") or []
        if any(entry[0] is code for entry in stack):
            now = time.monotonic_ns()
            while stack:
                ended, ring, ticket = stack.pop()
                # Calls above it ended unseen. A fork's child returns from calls that its parent began.
                if ring is self._ring_of_call():
                    ring.end(ticket, now, failed and ended is code)
                if ended is code:
                    break
        if traced[2] is not None and not failed:
            traced[2]()
