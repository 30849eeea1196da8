"""The ring of probe/RING.md, written by Python alone: a file in shared memory that outlives the process.

Under the GIL the protocol of RING.md needs no atomic instructions: a ticket comes from one call of C, and whoever finds a
slot half written leaves it. Where the C library is there, it writes the records instead (native.py), with the same protocol.
"""

import itertools
import os
import struct
import time

VERSION = 1
HEADER_BYTES, RECORD_BYTES = 4096, 64
COMMS, CONNECTIONS, NAMES, WORDS_BYTES = 256, 4096, 512, 16384
COMM_BYTES, CONNECTION_BYTES, NAME_BYTES = 128, 64, 64
WRITER_PYTHON = 2
NO_NAME = 65535

PYTHON_CALL, GARBAGE_COLLECTION, ITERATION, MEMORY = 4, 5, 6, 7
FAILED = 64
RUNNING, EXIT, EXCEPTION, SIGNAL = 0, 1, 2, 3

# Offsets in the header.
HEAD, DROPPED, LATE_UPDATES = 512, 576, 584
NAMES_IN_USE, TABLES_FULL = 648, 652
RANK, WORLD_SIZE, GPU = 72, 76, 84
ANCHOR, START_TICKS, HOST, JOB, LIBRARY, SOURCE = 104, 120, 128, 192, 320, 384
_ROOM = {HOST: 64, JOB: 128, LIBRARY: 64, SOURCE: 32}
HEARTBEAT = 704
ENDED, ENDED_NS, WORDS_LENGTH = 768, 776, 784
PHASE_SINCE, PHASE, PHASE_BYTES = 832, 840, 56
STACKS_WANTED, STACKS_ANSWERED = 1056, 1060
PROFILE_WANTED, PROFILE_STEPS, PROFILE_ANSWERED = 1064, 1068, 1076
VALIDATION_WANTED, VALIDATION_ANSWERED = 1072, 1080
VALIDATION, VALIDATION_BYTES = 1152, 256

_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_U64 = struct.Struct("<Q")
_PAIR = struct.Struct("<QQ")
# Behind the stamp: kind … e.
_CONTENT = struct.Struct("<BBBBHBBQIiQQQII")
_U64_MASK = (1 << 64) - 1
_U32_MASK = (1 << 32) - 1


class Ring:
    """One file. `path` is its path; other files about this process lie beside it under longer names."""

    def __init__(self, path, memory, records_offset, names_offset, words_offset, count):
        self.path = path
        self.memory = memory
        self.pid = os.getpid()
        self.made_ns = time.monotonic_ns()
        self._records = records_offset
        self._names_offset = names_offset
        self._words_offset = words_offset
        self._count = count
        self._tickets = itertools.count()
        self._names = {}

    # Records.

    def append(self, kind, function=0, group=NO_NAME, a=0, b=0, c=0, issued=0, ended=0, d=0, e=0):
        """Writes a record; its ticket, or None where its slot was still being written."""
        ticket = next(self._tickets)
        memory, stamp = self.memory, (ticket + 1) * 2
        if stamp > 2 * _U64.unpack_from(memory, HEAD)[0]:
            _U64.pack_into(memory, HEAD, ticket + 1)
        at = self._records + (ticket & (self._count - 1)) * RECORD_BYTES
        seen = _U64.unpack_from(memory, at)[0]
        if seen & 1 or seen > stamp:
            self._add(DROPPED)
            return None
        _U64.pack_into(memory, at, stamp | 1)
        _CONTENT.pack_into(memory, at + 8, kind, function, 255, 0, group, 0, 0, a & _U64_MASK, b & _U32_MASK, c,
                           issued, issued, ended, d & _U32_MASK, e & _U32_MASK)
        _U64.pack_into(memory, at, stamp)
        return ticket

    def end(self, ticket, ended, failed=False):
        """The operator of this record has ended."""
        if ticket is None:
            return
        memory, stamp = self.memory, (ticket + 1) * 2
        at = self._records + (ticket & (self._count - 1)) * RECORD_BYTES
        if _U64.unpack_from(memory, at)[0] != stamp:
            self._add(LATE_UPDATES)
            return
        _U64.pack_into(memory, at, stamp | 1)
        _U64.pack_into(memory, at + 48, ended)
        if failed:
            memory[at + 11] |= FAILED
        _U64.pack_into(memory, at, stamp)

    def name(self, text):
        """Index of a name; NO_NAME where the table is full."""
        index = self._names.get(text)
        if index is not None:
            return index
        index = len(self._names)
        if index == NAMES:
            self._add(TABLES_FULL, _U32)
            return NO_NAME
        self._put_text(self._names_offset + index * NAME_BYTES, text, NAME_BYTES)
        self._names[text] = index
        self.put(NAMES_IN_USE, index + 1)
        return index

    def remove(self):
        """The file; who has it mapped keeps the memory."""
        try:
            os.unlink(self.path)
        except OSError:
            pass

    # Header.

    def head(self):
        return _U64.unpack_from(self.memory, HEAD)[0]

    def get(self, at):
        return _U32.unpack_from(self.memory, at)[0]

    def put(self, at, value):
        (_I32 if value < 0 else _U32).pack_into(self.memory, at, value)

    def put_text(self, at, text):
        self._put_text(at, text, _ROOM[at])

    def text(self, at, length):
        return bytes(self.memory[at : at + length]).split(b"\0", 1)[0].decode("utf-8", "replace")

    def beat(self):
        """A sign of life, and what both clocks say now."""
        now = time.monotonic_ns()
        _PAIR.pack_into(self.memory, ANCHOR, time.time_ns(), now)
        _U64.pack_into(self.memory, HEARTBEAT, now)

    def touch(self):
        """Stores through a mapping do not change a file's time, by which others judge whether it may be removed."""
        os.utime(self.path)

    def put_words(self, text):
        """The last words, as far as there is room."""
        data = text.encode("utf-8", "replace")[:WORDS_BYTES]
        self.memory[self._words_offset : self._words_offset + len(data)] = data
        _U64.pack_into(self.memory, WORDS_LENGTH, len(data))

    def put_phase(self, name):
        """What the process does other than training; None: it trains."""
        _U64.pack_into(self.memory, PHASE_SINCE, 0)
        if name is not None:
            self._put_text(PHASE, name, PHASE_BYTES)
            _U64.pack_into(self.memory, PHASE_SINCE, time.monotonic_ns())

    def put_end(self, how, code):
        _I32.pack_into(self.memory, ENDED + 4, code)
        _U64.pack_into(self.memory, ENDED_NS, time.monotonic_ns())
        _I32.pack_into(self.memory, ENDED, how)

    def ended(self):
        return _I32.unpack_from(self.memory, ENDED)[0]

    def _add(self, at, form=_U64):
        form.pack_into(self.memory, at, form.unpack_from(self.memory, at)[0] + 1)

    def _put_text(self, at, text, room):
        data = text.encode("utf-8", "replace")
        if len(data) >= room:
            data = data[: room - 1].decode("utf-8", "ignore").encode()
        self.memory[at : at + room] = data.ljust(room, b"\0")
