"""What the environment says: who this process is in the job, and what is to be traced."""

import os
import re
import socket
import sys

_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_WORLD = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_JOB = ("FAULTLINE_JOB", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID")
_LEAST_RECORDS, _MOST_RECORDS, _RECORDS = 64, 1 << 24, 16384


def first_number(names):
    """The first of the variables that is a number; -1 where none is."""
    for name in names:
        text = os.environ.get(name, "")
        if re.fullmatch(r"[0-9]{1,9}", text):
            return int(text)
    return -1


def number(name, otherwise):
    """A variable that is a number, not below zero. What is none counts as not set: the job's environment is not ours to judge."""
    try:
        value = float(os.environ[name])
    except (KeyError, ValueError):
        return otherwise
    return value if 0 <= value < float("inf") else otherwise


def is_off(name):
    return os.environ.get(name) == "0"


def why_not_here():
    """Why the probe does not start on this Python; None where it does."""
    if sys.platform != "linux":
        return f"the probe works on Linux, not on {sys.platform}"
    if sys.version_info < (3, 8):
        return f"the probe needs Python 3.8 or newer, this is {sys.version.split()[0]}"
    if sys.implementation.name != "cpython":
        return f"the probe works in CPython, not in {sys.implementation.name}"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "the probe does not know Pythons without a GIL"
    return None


def job_name():
    job = next((os.environ[name] for name in _JOB if os.environ.get(name)), "job")
    return re.sub(r"[^A-Za-z0-9_-]", "_", job)[:48]


def job_text():
    """The job as the header has it: with the meeting point, which tells two jobs of one name apart."""
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    return job_name() + (f" {address}:{port}" if address and port else "")


def rank():
    return first_number(_RANK)


def is_told_rank():
    return first_number(_RANK[:1]) >= 0


def world_size():
    return first_number(_WORLD)


def local_rank():
    return first_number(_LOCAL)


def host():
    return os.environ.get("NCCL_HOSTID") or socket.gethostname()


def folder():
    return os.environ.get("FAULTLINE_DIR") or f"/dev/shm/faultline-{os.geteuid()}"


def library_path():
    """Where the native library is; None where there is none. FAULTLINE_LIBRARY names another, or one that is not there."""
    said = os.environ.get("FAULTLINE_LIBRARY")
    here = os.path.dirname(os.path.abspath(__file__))
    beside = (os.path.join(here, "libfaultline.so"), os.path.join(here, "..", "..", "nccl", "build", "libfaultline.so"))
    return next((os.path.abspath(place) for place in ((said,) if said else beside) if os.path.exists(place)), None)


def name_plugin():
    """NCCL loads our library when it starts, unless the job has named a plug-in of its own. NCCL before 2.23 looks for none."""
    library = library_path()
    if library is not None:
        os.environ.setdefault("NCCL_PROFILER_PLUGIN", library)


def unname_plugin():
    if os.environ.get("NCCL_PROFILER_PLUGIN") == library_path():
        del os.environ["NCCL_PROFILER_PLUGIN"]


def record_count():
    wanted = min(max(int(number("FAULTLINE_RECORDS", _RECORDS)), _LEAST_RECORDS), _MOST_RECORDS)
    return 1 << (wanted - 1).bit_length()


_said = False


def say(line):
    """One line on stderr, and no second one: a job's log is not ours to fill."""
    global _said
    if _said:
        return
    _said = True
    try:
        sys.stderr.write(f"faultline: {line}\n")
        sys.stderr.flush()
    except Exception:
        pass  # A job may have closed it.
