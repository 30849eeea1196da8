"""A CUDA MPS daemon for one run: several ranks share one GPU, and a rank that dies takes the daemon with it."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager

CONTROL = "nvidia-cuda-mps-control"


def _servers(folder):
    """Processes of the daemon that belong to this folder: they inherit the variable that names it."""
    wanted = f"CUDA_MPS_PIPE_DIRECTORY={folder}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/comm") as comm, open(f"/proc/{name}/environ", "rb") as environ:
                if comm.read().startswith("nvidia-cuda-mps") and wanted in environ.read().split(b"\0"):
                    yield int(name)
        except OSError:
            pass


def _stop(folder, env):
    try:
        subprocess.run([CONTROL], input="quit\n", text=True, env=env, timeout=10, capture_output=True)
    except (OSError, subprocess.TimeoutExpired):
        pass
    for pid in _servers(folder):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


@contextmanager
def daemon(wanted):
    """Variables for the ranks; none where no daemon is wanted or there is no such program."""
    if not wanted or shutil.which(CONTROL) is None:
        yield {}
        return
    folder = tempfile.mkdtemp(prefix="faultline-mps-")
    variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    env = dict(os.environ, **variables)
    try:
        subprocess.run([CONTROL, "-d"], env=env, timeout=30, check=True, stdin=subprocess.DEVNULL)
        yield variables
    finally:
        _stop(folder, env)
        shutil.rmtree(folder, ignore_errors=True)
