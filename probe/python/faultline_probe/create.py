"""Makes a ring's file: folder, name, header (probe/RING.md, "Where" and "Header")."""

import errno
import mmap
import os
import stat
import struct
import sys
import time

from . import ring as layout
from . import settings

_LIVE_NS = 10 * 10**9
_DAY_S = 86400
# Populated, so that the first lap costs no page faults. Python has the name from 3.10 on.
_POPULATE = 0x8000 if sys.platform == "linux" else 0
_U64 = struct.Struct("<Q")
_HEADER = struct.Struct("<8sIIIIQIIIIIIIIIiiiiiQQQQQ")


class NoRing(Exception):
    """Why there is none, in words for a person."""


def create(rank, world_size):
    """Makes this process' ring. Raises NoRing."""
    try:
        return _create(rank, world_size)
    except OSError as error:
        raise NoRing(f"{error.filename or settings.folder()}: {error.strerror}") from None


def _create(rank, world_size):
    path = settings.folder().rstrip("/") or "/"
    folder = _open_folder(path)
    try:
        prefix = f"{settings.job_name()}.r{'x' if rank < 0 else rank}."
        name = f"{prefix}{os.getpid()}.python.ring"
        _sweep(folder, prefix)
        file = _open_file(folder, name)
        try:
            return _map(file, os.path.join(path, name), rank, world_size)
        except OSError as error:
            os.unlink(name, dir_fd=folder)
            error.filename = path
            raise
        finally:
            os.close(file)
    finally:
        os.close(folder)


def _open_folder(path):
    """Refuses whatever another user could have laid in the way."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NoRing(f"{path}: is a link or no folder") from None
        raise
    status, reason = os.fstat(folder), None
    if status.st_uid != os.geteuid():
        reason = "the folder belongs to another user (set FAULTLINE_DIR)"
    elif status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
        reason = "others may write into the folder (chmod go-w, or set FAULTLINE_DIR)"
    if reason:
        os.close(folder)
        raise NoRing(f"{path}: {reason}")
    return folder


def _open_file(folder, name):
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, 0o600, dir_fd=folder)
    except FileExistsError:
        # This process before an exec, a dead one of the same number, or, where containers share the folder, a living one.
        old = _read_header(folder, name)
        if old and old[0] != start_ticks("self") and abs(time.monotonic_ns() - old[1]) < _LIVE_NS:
            raise NoRing(f"{name}: another living process has it (set FAULTLINE_DIR or FAULTLINE_JOB)") from None
        os.unlink(name, dir_fd=folder)
        return os.open(name, flags, 0o600, dir_fd=folder)


def _read_header(folder, name):
    """Start of its process in ticks, heartbeat and anchor of somebody's ring; None where it is no ring."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
        try:
            head = os.pread(file, layout.HEADER_BYTES, 0)
        finally:
            os.close(file)
    except OSError:
        return None
    if len(head) < layout.HEADER_BYTES or head[:8] != b"FLTRING\0":
        return None
    return tuple(_U64.unpack_from(head, at)[0] for at in (layout.START_TICKS, layout.HEARTBEAT, layout.ANCHOR))


def _map(file, path, rank, world_size):
    count = settings.record_count()
    comms = layout.HEADER_BYTES
    connections = comms + layout.COMMS * layout.COMM_BYTES
    names = connections + layout.CONNECTIONS * layout.CONNECTION_BYTES
    words = names + layout.NAMES * layout.NAME_BYTES
    records = (words + layout.WORDS_BYTES + 4095) // 4096 * 4096
    size = records + count * layout.RECORD_BYTES
    # Allocated as a whole now: a store into a hole of a full file system would be a SIGBUS in the middle of training.
    os.posix_fallocate(file, 0, size)
    # Python's mapping has a descriptor of its own and closes that number when it goes, which may be the job's by then.
    own = {"trackfd": False} if sys.version_info >= (3, 13) else {}
    memory = mmap.mmap(file, size, mmap.MAP_SHARED | _POPULATE, mmap.PROT_READ | mmap.PROT_WRITE, **own)
    _keep_for_ever(memory)
    ring = layout.Ring(path, memory, records, names, words, count)
    real, now = time.time_ns(), time.monotonic_ns()
    _HEADER.pack_into(
        memory, 0, bytes(8), layout.VERSION, layout.HEADER_BYTES, layout.RECORD_BYTES, count, records,
        comms, layout.COMMS, connections, layout.CONNECTIONS, names, layout.NAMES, words, layout.WORDS_BYTES,
        layout.WRITER_PYTHON, os.getpid(), rank, world_size, settings.local_rank(), -1,
        real, now, real, now, start_ticks("self"))
    ring.put_text(layout.HOST, settings.host())
    ring.put_text(layout.JOB, settings.job_text())
    ring.put_text(layout.LIBRARY, "Python " + sys.version.split()[0])
    ring.put_text(layout.SOURCE, "python")
    ring.beat()
    # Last: a file without it is not a ring yet.
    memory[0:8] = b"FLTRING\0"
    return ring


_kept = []


def _keep_for_ever(memory):
    _kept.append(memory)
    try:
        import ctypes

        # Past the end of Python, too, where its modules give back what they hold.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    except (ImportError, AttributeError):
        pass


def start_ticks(pid):
    """When a process was started (/proc/<pid>/stat, field 22); 0 where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # Field 2, the program's name, may hold anything, brackets and blanks included.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def _sweep(folder, prefix):
    """Removes what dead processes of the same job and rank left more than a day ago."""
    for name in os.listdir(folder):
        pid = name[len(prefix) :].partition(".")[0]
        if not name.startswith(prefix) or not pid.isdigit() or ".ring" not in name:
            continue
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            old = _read_header(folder, name)
            touched = max(status.st_mtime, old[2] / 1e9 if old else 0)
            if not stat.S_ISREG(status.st_mode) or time.time() - touched < _DAY_S:
                continue
            now_there = start_ticks(pid)
            if now_there == 0 or (old and now_there != old[0]):
                os.unlink(name, dir_fd=folder)
        except OSError:
            continue
