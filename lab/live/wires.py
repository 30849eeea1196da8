"""Who sends to whom in a running job, and how much: from the sockets of its processes, as the kernel counts their bytes.

What was acknowledged on a connection is asked of a copy of its descriptor (pidfd_getfd), which needs the right to trace the process.
"""
import ctypes, os, socket, struct, time

PIDFD_GETFD = 438
ACKNOWLEDGED = 120      # tcpi_bytes_acked in struct tcp_info
LIBC = ctypes.CDLL(None, use_errno=True)


def _table():
    """Inode of every connection of this network namespace -> (own port, other end's port)."""
    ends = {}
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/self/net/{name}") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "01":      # established
                ends[int(fields[9])] = tuple(int(fields[i].rsplit(":", 1)[1], 16) for i in (1, 2))
    return ends


def _sockets(pid):
    """Descriptor -> inode."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            yield int(name), int(target[8:-1])


def _acknowledged(pid, fd):
    process = os.pidfd_open(pid)
    try:
        copy = LIBC.syscall(PIDFD_GETFD, process, fd, 0)
    finally:
        os.close(process)
    if copy < 0:
        return 0
    with socket.socket(fileno=copy) as one:
        try:
            info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, ACKNOWLEDGED + 8)
        except OSError:
            return 0
    return struct.unpack_from("<Q", info, ACKNOWLEDGED)[0] if len(info) >= ACKNOWLEDGED + 8 else 0


def _sent(pids):
    """(sending rank, receiving rank) -> bytes that arrived so far."""
    ends = _table()
    mine = [{inode: fd for fd, inode in _sockets(pid) if inode in ends} for pid in pids]
    rank_of = {ends[inode]: rank for rank, sockets in enumerate(mine) for inode in sockets}
    total = {}
    for rank, sockets in enumerate(mine):
        for inode, fd in sockets.items():
            own, other = ends[inode]
            to = rank_of.get((other, own))
            if to is not None and to != rank:
                total[rank, to] = total.get((rank, to), 0) + _acknowledged(pids[rank], fd)
    return total


def traffic(pids, seconds=3.0):
    """[(bytes a second, sending rank, receiving rank)], the busiest wire first."""
    before = _sent(pids)
    began = time.monotonic()
    time.sleep(seconds)
    after = _sent(pids)
    lasted = time.monotonic() - began
    return sorted((((n - before.get(wire, 0)) / lasted, *wire) for wire, n in after.items()), reverse=True)


def busy_wire(pids, draw, seconds=3.0):
    """One of the wires that carry at least half as much as the busiest: (bytes a second, from, to); none where nothing is sent."""
    every = traffic(pids, seconds)
    if not every or every[0][0] < 1000:
        return None
    return draw.choice(sorted(w for w in every if w[0] >= every[0][0] / 2))
