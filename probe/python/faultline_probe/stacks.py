"""Stacks of all threads, into the file beside the ring, in the words of Python's faulthandler, which readers know.

Where Python code can run, it is written here: faulthandler would call the thread that asks the current one, and name none.
Where it cannot, because a thread keeps the GIL or a signal kills, faulthandler itself does it.
"""

import faulthandler
import os
import sys
import threading
import time

# As faulthandler does.
_MOST_FRAMES = 100
_MOST_BYTES = 4 << 20


class Stacks:
    def __init__(self, ring, rank_text):
        self._rank_text = rank_text
        self._path = ring.path + ".stacks"
        self._file = None
        self._is_requested = False
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._path, flags, 0o600), "wb", 0)
        except OSError:
            return  # No place for it; the ring itself is there.
        global _is_enabled_by_us
        if not faulthandler.is_enabled():
            faulthandler.enable(file=self._file)
            _is_enabled_by_us = True

    def write(self, is_requested):
        try:
            # A job that is asked every minute for weeks must not fill the memory.
            if os.fstat(self._file.fileno()).st_size > _MOST_BYTES:
                self._file.truncate(0)
            self._file.write(self._text().encode("utf-8", "replace"))
            self._is_requested = is_requested
        except (OSError, ValueError, AttributeError):
            pass

    def forget_hang(self):
        """The job moves on: what it stood in is past, and would read as a hang to whoever comes later."""
        try:
            if not self._is_requested and os.fstat(self._file.fileno()).st_size > 0:
                self._file.truncate(0)
        except (OSError, ValueError, AttributeError):
            pass

    def leave(self):
        """At the end in order: a file that nothing was written to goes away."""
        try:
            if os.fstat(self._file.fileno()).st_size == 0:
                os.unlink(self._path)
        except (OSError, ValueError, AttributeError):
            pass

    def watch_gil(self, seconds):
        """Dumps unless it is called again in time. A job that uses faulthandler's only timer itself keeps it."""
        if self._file is None or _timer.is_jobs:
            return
        try:
            _timer.later(seconds, file=self._file)
        except (RuntimeError, ValueError, OSError):
            pass

    def _text(self):
        frames = sys._current_frames()
        me = threading.get_ident()
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        main = threading.main_thread().ident
        # Of this form faulthandler announces what its own timer dumps. The main thread last, as there.
        lines = [f"Timeout (rank {self._rank_text()}, pid {os.getpid()}, {time.time():.3f})!"]
        for ident, frame in sorted(frames.items(), key=lambda entry: entry[0] == main):
            if ident == me:
                continue
            name = "MainThread" if ident == main else names.get(ident, "")
            name = "".join(c for c in name if c.isprintable() and c not in "[]")
            lines.append(f"Thread 0x{ident:016x}{f' [{name}]' if name else ''} (most recent call first):")
            for _ in range(_MOST_FRAMES):
                if frame is None:
                    break
                code, line = frame.f_code, frame.f_lineno or "???"
                lines.append(f'  File "{code.co_filename}", line {line} in {code.co_name}')
                frame = frame.f_back
            else:
                lines.append("  ...")
        return "\n".join(lines) + "\n"


class _Timer:
    """faulthandler has one timer a process. A job that sets it keeps it: its calls are seen here first."""

    def __init__(self):
        self.is_jobs = False
        self.later = faulthandler.dump_traceback_later
        self._cancel = faulthandler.cancel_dump_traceback_later

    def watch(self):
        def dump_traceback_later(*args, **kwargs):
            self.is_jobs = True
            return self.later(*args, **kwargs)

        def cancel_dump_traceback_later():
            self.is_jobs = False
            return self._cancel()

        dump_traceback_later.__doc__, cancel_dump_traceback_later.__doc__ = self.later.__doc__, self._cancel.__doc__
        faulthandler.dump_traceback_later = dump_traceback_later
        faulthandler.cancel_dump_traceback_later = cancel_dump_traceback_later

    def cancel(self):
        if not self.is_jobs:
            self._cancel()


_is_enabled_by_us = False


def let_go():
    """In a fork's child: its crash is not its parent's."""
    global _is_enabled_by_us
    if _is_enabled_by_us:
        _is_enabled_by_us = False
        faulthandler.disable()


_timer = _Timer()
watch_timer = _timer.watch
cancel_timer = _timer.cancel
