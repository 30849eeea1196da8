"""A CUDA MPS daemon for one run: several ranks share one GPU, and a rank that dies takes the daemon with it."""

import multiprocessing
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


class Shared:
    """One daemon for jobs side by side, in several processes or threads of one program. A rank that was killed while its kernels
    ran may have spoilt it: then it is started anew, as soon as no job uses it."""

    def __init__(self, folder):
        self.at = folder
        self.wanted = shutil.which(CONTROL) is not None
        self.users, self.spoilt, self.generation = (multiprocessing.Value("i", n, lock=False) for n in (0, 1, 0))
        self.free = multiprocessing.Condition()

    def folder(self):
        return f"{self.at}{self.generation.value}"

    def variables(self):
        return {"CUDA_MPS_PIPE_DIRECTORY": self.folder(), "CUDA_MPS_LOG_DIRECTORY": self.folder()} if self.wanted else {}

    def enter(self):
        """Variables for the ranks of one job."""
        with self.free:
            while self.spoilt.value and self.users.value > 0:
                self.free.wait(1)
            if self.spoilt.value and self.wanted:
                self.stop()
                self.generation.value += 1
                os.makedirs(self.folder(), exist_ok=True)
                subprocess.run([CONTROL, "-d"], env=dict(os.environ, **self.variables()), timeout=30, check=False, stdin=subprocess.DEVNULL)
            self.spoilt.value = 0
            self.users.value += 1
            return self.variables()

    def leave(self, killed):
        with self.free:
            self.users.value -= 1
            self.spoilt.value |= int(killed)
            self.free.notify_all()

    def stop(self):
        if self.wanted and self.generation.value:
            _stop(self.folder(), dict(os.environ, **self.variables()))
