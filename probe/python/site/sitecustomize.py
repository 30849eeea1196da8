"""Python imports this at its start where the folder is on PYTHONPATH: switches the probe on by the environment alone
(FAULTLINE_PROBE=1), then runs the sitecustomize that would have been found without us."""


def _start_probe():
    import os

    wanted = os.environ.get("FAULTLINE_PROBE", "0")
    if wanted in ("", "0"):
        return
    import faultline_probe

    # "main:<pid>": python -m faultline_probe became this process. It trains; what it starts may not.
    faultline_probe.start(is_trainer=wanted == f"main:{os.getpid()}")


def _run_next():
    """Whatever it raises is its own, and shown as Python would show it."""
    import os
    import sys
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    others = [path for path in sys.path if os.path.realpath(path or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start_probe()
except Exception:
    pass  # A probe that cannot even be imported is no reason for a job not to start.
_run_next()
