"""Stacks of all threads, into the file beside the ring, in the words of Python's faulthandler, which readers know.

Where Python code can run, it is written here: faulthandler would call the thread that asks the current one, and name none.
Where it cannot, because a thread keeps the GIL or a signal kills, faulthandler itself does it.
"""

import faulthandler
import fcntl
import os
import resource
import stat
import sys
import threading
import time

# As faulthandler does.
_MOST_FRAMES = 100
_MOST_BYTES = 4 << 20
# A job may close every descriptor (daemons do) and open its own files, from the lowest number on.
_OUT_OF_THE_WAY = 1024


class Stacks:
    """No descriptor is trusted to be ours still: one that is kept, for faulthandler, is looked at again and again."""

    def __init__(self, ring, rank_text):
        self._rank_text = rank_text
        self._path = ring.path + ".stacks"
        self._identity = None
        self._kept = -1
        self._is_requested = False
        try:
            # Whatever lies there is of a process that is gone, or in the way (a pipe would hold us for ever).
            try:
                os.unlink(self._path)
            except FileNotFoundError:
                pass
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            self._identity = _identity(file)
            os.close(file)
            self._keep()
        except OSError:
            return  # No place for it; the ring itself is there.
        _crashes.enable(self._kept)

    @property
    def has_crashes(self):
        """Whether faulthandler writes here what a crash leaves."""
        return _crashes.is_ours

    def write(self, is_requested):
        text = self._text().encode("utf-8", "replace")
        try:
            file = self._open()
            try:
                # A job that is asked every minute for weeks must not fill the memory.
                if os.fstat(file).st_size > _MOST_BYTES:
                    os.ftruncate(file, 0)
                os.write(file, text)
            finally:
                os.close(file)
            self._is_requested = is_requested
        except OSError:
            pass

    def forget_hang(self):
        """The job moves on: what it stood in is past, and would read as a hang to whoever comes later."""
        try:
            if self._is_requested or os.lstat(self._path).st_size == 0:
                return
            file = self._open()
            try:
                os.ftruncate(file, 0)
            finally:
                os.close(file)
        except OSError:
            pass

    def leave(self):
        """At the end in order: a file that nothing was written to goes away."""
        try:
            status = os.lstat(self._path)
            if (status.st_dev, status.st_ino) == self._identity and status.st_size == 0:
                os.unlink(self._path)
        except OSError:
            pass

    def look_after(self):
        """Once a second: where the descriptor that faulthandler has is the job's by now, faulthandler gets another or none."""
        if self._kept < 0 or _identity(self._kept) == self._identity:
            return
        _timer.cancel()
        self._kept = -1
        try:
            self._keep()
        except OSError:
            pass
        _crashes.move(self._kept)

    def watch_gil(self, seconds):
        """Dumps unless it is called again in time. A job that uses faulthandler's only timer itself keeps it."""
        self.look_after()
        if self._kept < 0 or _timer.is_jobs:
            return
        try:
            _timer.later(seconds, file=self._kept)
        except (RuntimeError, ValueError, OSError):
            pass

    def let_go(self):
        """In a fork's child: its crash is not its parent's."""
        _crashes.disable()
        if self._kept >= 0 and _identity(self._kept) == self._identity:
            os.close(self._kept)
        self._kept = -1

    def _open(self):
        """The file, opened for a moment. Raises OSError where it is not the one that we made."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if _identity(file) != self._identity:
            os.close(file)
            raise OSError
        return file

    def _keep(self):
        file = self._open()
        try:
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            least = _OUT_OF_THE_WAY if soft < 0 else min(_OUT_OF_THE_WAY, soft * 3 // 4)
            self._kept = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, least)
        finally:
            os.close(file)

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


class _Crashes:
    """faulthandler's handlers of fatal signals: ours until the job enables or disables them itself."""

    def __init__(self):
        self.is_ours = False
        self._enable, self._disable = faulthandler.enable, faulthandler.disable

    def watch(self):
        def enable(*args, **kwargs):
            self.is_ours = False
            return self._enable(*args, **kwargs)

        def disable():
            self.is_ours = False
            return self._disable()

        enable.__doc__, disable.__doc__ = self._enable.__doc__, self._disable.__doc__
        faulthandler.enable, faulthandler.disable = enable, disable

    def enable(self, file):
        if not faulthandler.is_enabled():
            self._enable(file=file)
            self.is_ours = True

    def move(self, file):
        if not self.is_ours:
            return
        if file < 0:
            self.disable()
        else:
            self._enable(file=file)

    def disable(self):
        if self.is_ours:
            self.is_ours = False
            self._disable()


def _identity(file):
    """Which file a descriptor is; None where it is none, or no plain file."""
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


_timer = _Timer()
_crashes = _Crashes()
cancel_timer = _timer.cancel


def watch_faulthandler():
    _timer.watch()
    _crashes.watch()
