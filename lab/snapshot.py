"""Copies the rings of a run while it goes on, and what is known of their processes: probe/RING.md, "into a copy".

    snapshot.py RINGS OUT [--recorder RUN] [--wait 8] [--stacks]

Writes OUT/rings and OUT/recorder: what `faultline agent dump` does, for machines without Node. Prints one line of JSON:
how many there were, and how long it took.
"""

import argparse
import json
import os
import re
import shutil
import stat
import struct
import time

MAGIC, HEADER = b"FLTRING\0", 4096
WRITER_AT, PID_AT, TICKS_AT, WANTED_AT, ANSWERED_AT = 64, 68, 120, 1056, 1060
COPIED_AT, STATE_AT, WAITS_IN_AT = 1536, 1552, 1560
PYTHON = 2


def process(pid, ticks):
    """State and the kernel function it waits in; X where the process is gone, or another has its number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return b"X", b""
    if ticks and int(fields[19]) != ticks:  # field 22; the first two are before the bracket
        return b"X", b""
    try:
        with open(f"/proc/{pid}/wchan", "rb") as file:
            waits_in = file.read(63)
    except OSError:
        waits_in = b""
    return fields[0], b"" if waits_in == b"0" else waits_in


def copy_ring(source, target):
    with open(source, "rb") as file:
        ring = bytearray(file.read())
    if len(ring) < HEADER or ring[:8] != MAGIC:
        return False
    (pid,), (ticks,) = struct.unpack_from("<i", ring, PID_AT), struct.unpack_from("<Q", ring, TICKS_AT)
    state, waits_in = process(pid, ticks)
    struct.pack_into("<QQ", ring, COPIED_AT, time.time_ns(), time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    struct.pack_into("<c", ring, STATE_AT, state)
    struct.pack_into("<64s", ring, WAITS_IN_AT, waits_in)
    with open(target, "wb") as file:
        file.write(ring)
    return True


def files(folder, part):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if part in name and stat.S_ISREG(os.lstat(path).st_mode):
            yield name, path


def copy_rings(source, target):
    os.makedirs(target, exist_ok=True)
    return sum(copy_ring(path, os.path.join(target, name)) for name, path in files(source, ".ring") if name.endswith(".ring"))


def copy_sidecars(source, target):
    for name, path in files(source, ".ring."):
        if os.path.getsize(path):
            shutil.copyfile(path, os.path.join(target, name))


def ask_for_stacks(source, seconds):
    """The Python probes write their threads' stacks beside the ring; a stopped process cannot. How many did."""
    asked = []
    for name, path in files(source, ".python.ring"):
        if not name.endswith(".ring"):
            continue
        with open(path, "r+b", buffering=0) as file:
            head = file.read(HEADER)
            if len(head) == HEADER and head[:8] == MAGIC and struct.unpack_from("<I", head, WRITER_AT)[0] == PYTHON:
                number = struct.unpack_from("<I", head, WANTED_AT)[0] + 1 & 0xFFFFFFFF
                os.pwrite(file.fileno(), struct.pack("<I", number), WANTED_AT)
                asked.append((path, number))
    answered, end = 0, time.monotonic() + seconds
    while asked and answered < len(asked) and time.monotonic() < end:
        time.sleep(0.05)
        answered = 0
        for path, number in asked:
            with open(path, "rb") as file:
                file.seek(ANSWERED_AT)
                answered += struct.unpack("<I", file.read(4))[0] == number
    return answered


def flight_recorder(run, target, seconds):
    """Asks every rank for its dump through its pipe, and waits for those that answer. A stopped rank cannot."""
    ranks = []
    for name in os.listdir(run):
        found = re.fullmatch(r"fr_pipe_(\d+)\.pipe", name)
        if not found:
            continue
        try:
            pipe = os.open(os.path.join(run, name), os.O_WRONLY | os.O_NONBLOCK)  # ENXIO: nobody listens
            os.write(pipe, b"1")
            os.close(pipe)
            ranks.append(found[1])
        except OSError:
            pass
    wanted, sizes, end = {f"fr_dump_rank_{rank}" for rank in ranks}, {}, time.monotonic() + seconds
    while wanted and time.monotonic() < end:
        time.sleep(0.2)
        for name in sorted(wanted):
            try:
                size = os.path.getsize(os.path.join(run, name))
            except OSError:
                continue
            if size and sizes.get(name) == size:  # stands since 0.2 s: it is whole
                wanted.discard(name)
            sizes[name] = size
    os.makedirs(target, exist_ok=True)
    for name in sizes:
        shutil.copyfile(os.path.join(run, name), os.path.join(target, name))
    return len(sizes)


def take(rings, target, recorder=None, seconds=8.0, stacks=False):
    told, began = {}, time.monotonic()

    def did(what, how_many):
        nonlocal began
        told[what], told[f"{what}Ms"] = how_many, round((time.monotonic() - began) * 1e3, 1)
        began = time.monotonic()

    did("rings", copy_rings(rings, os.path.join(target, "rings")))
    if stacks:
        did("stacks", ask_for_stacks(rings, 2.0))
    copy_sidecars(rings, os.path.join(target, "rings"))
    if recorder:
        did("dumps", flight_recorder(recorder, os.path.join(target, "recorder"), seconds))
    return told


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rings")
    parser.add_argument("out")
    parser.add_argument("--recorder", metavar="RUN", help="folder of a run of train.py: its flight recorders too")
    parser.add_argument("--wait", type=float, default=8, help="seconds that the dumps may take")
    parser.add_argument("--stacks", action="store_true", help="ask the Python probes for the stacks of their threads")
    chosen = parser.parse_args()
    print(json.dumps(take(chosen.rings, chosen.out, chosen.recorder, chosen.wait, chosen.stacks)))
