"""Imported by the .pth file of the installed package where FAULTLINE_PROBE is set: switches the probe on."""

import os

try:
    import faultline_probe

    # "main:<pid>": python -m faultline_probe became this process. It trains; what it starts may not.
    faultline_probe.start(is_trainer=os.environ.get("FAULTLINE_PROBE") == f"main:{os.getpid()}")
except Exception:
    pass  # A probe that cannot even be imported is no reason for a job not to start.
