"""What a fault of faults.py is: the kind of trouble, its cause, other words that are right."""

CAUSES = {
    "compute": ("fail-slow", "gpu-slow", []),
    "cpu": ("fail-slow", "cpu-stall", []),
    "data": ("fail-slow", "dataloader", ["cpu-stall"]),
    "hang": ("hang", "cpu-stall", []),
    "stop": ("hang", "process-stopped", ["cpu-stall"]),
    "gpuhang": ("hang", "gpu-hang", ["gpu-error"]),
    "early": ("hang", "cpu-stall", ["collective-mismatch", "user-program"]),
    "extra": ("hang", "collective-mismatch", ["user-program"]),
    "skip": ("hang", "collective-mismatch", ["user-program"]),
    "raise": ("crash", "user-program", []),
    "badfile": ("crash", "storage", ["dataloader", "user-program"]),
    "oom": ("crash", "gpu-memory", []),
    "kill": ("crash", "process-gone", []),
    "nan": ("crash", "numerical", ["user-program"]),
}
