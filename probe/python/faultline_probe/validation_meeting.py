"""Members of a group agree, through the job's own store, to go on together or to stop: nobody waits for ever.

A transfer whose other end is not there hangs a stream for good, so before each one all members must have said that they
take part. The first to say how it goes on decides for all: the last to arrive says go, one whose time is up says stop.
Plain counters, since every store has them; polled, since a blocking read would lock other threads out of the store.
"""

import time

_GO, _STOP = 1, 2
_counts = {}



class Meeting:
    def __init__(self, store, name, size, rank, deadline):
        # The same request may come twice in a process' life, with counters left from the first time.
        _counts[name] = _counts.get(name, 0) + 1
        self._store, self._size, self._rank, self._deadline = store, size, rank, deadline
        self.name, self._number = f"faultline/{name}/{_counts[name]}", 0
        self._pause = min(0.5, max(0.001, size * 5e-5))  # all together ask the store 20 times a millisecond
        self.is_over = False

    def together(self, ready=True):
        """Whether all go on. Where one is not `ready`, or does not come in time, nobody does, now and later."""
        if self.is_over or self._size == 1:
            self.is_over = self.is_over or not ready
            return not self.is_over
        self._number += 1
        key = f"{self.name}/{self._number}"
        if not ready or self._store.add(f"{key}/here", 1) == self._size:
            self._decide(key, _GO if ready else _STOP)
        while True:
            decided = self._store.add(f"{key}/decided", 0)
            if decided:
                break
            if time.monotonic() > self._deadline:
                # Somebody else may be about to decide: whoever was first counts.
                if self._decide(key, _STOP) or time.monotonic() > self._deadline + 5:
                    decided = _STOP
                    break
            time.sleep(self._pause)
        self.is_over = decided != _GO
        return not self.is_over

    def _decide(self, key, how):
        if self._store.add(f"{key}/first", 1) != 1:
            return False
        self._store.add(f"{key}/decided", how)
        return True

    def share(self, key, make):
        """What the first member makes, on all: they wait for it at the next meeting. Called by all; None where it failed."""
        name = f"{self.name}/{key}"
        if self._rank == 0:
            value = make()
            if self._size > 1:
                self._store.set(name, value)
            return value if self.together() else None
        return self._store.get(name).decode() if self.together() else None
