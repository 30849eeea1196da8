"""How the process ended, as far as Python sees it: an exception, or an exit in order. Exit codes and signals are C's."""

import atexit
import sys
import threading
import traceback

from . import ring as ring_file

_MOST_CHARACTERS = 12_000


class Ending:
    """`ring_now()` is the ring at that moment, or None; `leave()` is called at the end in order."""

    def __init__(self, ring_now, leave):
        self._ring_now = ring_now
        self._leave = leave
        self._thread_words = ""
        self._previous = sys.excepthook
        self._previous_in_thread = threading.excepthook
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        # Registered first, so run last: after whatever the job does at its exit.
        atexit.register(self._at_exit)

    def _on_exception(self, kind, value, trace):
        try:
            self._note(kind, value, trace)
        except Exception:
            pass
        self._previous(kind, value, trace)

    def _on_thread_exception(self, args):
        try:
            ring = self._ring_now()
            if ring is not None and args.exc_type is not SystemExit:
                thread = args.thread.name if args.thread else "?"
                text = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
                # The job may go on without the thread; if it ends by an exception of its own, that one comes first.
                self._thread_words = f"Exception in thread {thread}:\n{text[-_MOST_CHARACTERS // 3:]}"
                ring.put_words(self._thread_words)
        except Exception:
            pass
        self._previous_in_thread(args)

    def _note(self, kind, value, trace):
        ring = self._ring_now()
        if ring is None:
            return
        text = "".join(traceback.format_exception(kind, value, trace))
        words = text[-_MOST_CHARACTERS:]
        ring.put_words(f"{words}\n{self._thread_words}" if self._thread_words else words)
        ring.put_end(ring_file.EXCEPTION, 130 if issubclass(kind, KeyboardInterrupt) else 1)

    def _at_exit(self):
        try:
            ring = self._ring_now()
            if ring is None:
                return
            if ring.ended() == ring_file.RUNNING:
                # A job whose own excepthook took our place still leaves the exception here.
                value = getattr(sys, "last_value", None)
                if isinstance(value, BaseException) and not isinstance(value, SystemExit):
                    self._note(type(value), value, value.__traceback__)
                else:
                    # Behind us, C notes the code where the library is loaded.
                    ring.put_end(ring_file.EXIT, 0)
            self._leave()
        except Exception:
            pass
