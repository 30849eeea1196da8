"""Faultline's probe inside a training process: see docs/guides/probe.md.

    python -m faultline_probe train.py …            one process
    FAULTLINE_PROBE=1 torchrun … train.py           where the package is installed (pip)
    PYTHONPATH=…/probe/python/site:…/probe/python FAULTLINE_PROBE=1 torchrun … train.py

It writes what Python does (calls, garbage collections, iterations, how it ended) into a ring in shared memory
(probe/RING.md) and harms nothing: whatever fails, the job goes on without it. Standard library only.
"""

__all__ = ["iteration", "phase", "start"]

_probe = None
_has_started = False


def start(is_trainer=True):
    """Starts the probe, once. A trainer gets its ring at once, others with their first traced call."""
    global _probe, _has_started
    if _has_started:
        return
    _has_started = True
    try:
        from . import settings

        if settings.is_off("FAULTLINE"):
            return
        refusal = settings.why_not_here()
        if refusal:
            settings.say(f"{refusal}; the job goes on without the probe")
            return
        settings.name_plugin()
        from .probe import Probe

        _probe = Probe(is_trainer)
    except Exception as error:
        _say(error)


def iteration(number=None):
    """An iteration has ended: for jobs whose iterations are not the steps of their first optimizer. From the first call on
    these count alone. Without a number they are counted from 1."""
    try:
        if _probe is not None:
            _probe.iteration(number)
    except Exception as error:
        _say(error)


class phase:
    """The job does something other than training, and takes its time: no hang.

        with faultline_probe.phase("checkpoint"):
            save(model)

    Phases may lie within each other. Without a probe it does nothing."""

    def __init__(self, name):
        self._name = str(name)

    def __enter__(self):
        _change_phase(lambda probe: probe.enter_phase(self._name))
        return self

    def __exit__(self, *_):
        _change_phase(lambda probe: probe.leave_phase())
        return False


def _change_phase(change):
    try:
        if _probe is not None:
            change(_probe)
    except Exception as error:
        _say(error)


def _say(error):
    try:
        from . import settings

        settings.say(f"the probe stopped: {type(error).__name__}: {error}"[:300])
    except Exception:
        pass
