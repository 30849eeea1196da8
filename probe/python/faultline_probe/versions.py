"""Which PyTorch and NCCL the probe is made for. With older ones it records nothing and says so; FAULTLINE_ANY_VERSION=1
tries them."""

import os
import re
import sys

_LEAST = {"PyTorch": (2, 1), "NCCL": (2, 19)}


def why_not():
    """Why not with what the job has imported; None where nothing speaks against it, or nothing is known."""
    if os.environ.get("FAULTLINE_ANY_VERSION") == "1":
        return None
    for name, version in (("PyTorch", _torch()), ("NCCL", _nccl())):
        if version is not None and version[:2] < _LEAST[name]:
            least, this = (".".join(map(str, numbers)) for numbers in (_LEAST[name], version))
            return f"the probe needs {name} {least} or newer, this is {this} (FAULTLINE_ANY_VERSION=1 tries it)"
    return None


def _torch():
    said = getattr(sys.modules.get("torch"), "__version__", None)
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", str(said))
    return tuple(int(number) for number in match.groups() if number) if match else None


def _nccl():
    """PyTorch's own; None in a build without it. RCCL counts in another way."""
    if getattr(getattr(sys.modules.get("torch"), "version", None), "hip", None):
        return None
    try:
        version = sys.modules["torch.cuda.nccl"].version()
        return tuple(int(number) for number in version)
    except Exception:
        return None
