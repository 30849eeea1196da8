"""What a process is in its job, as PyTorch knows it where the job has imported it."""

import sys

from . import targets


def is_loader_worker():
    data = sys.modules.get("torch.utils.data")
    return data is not None and getattr(data, "get_worker_info", lambda: None)() is not None


def rank_in_group():
    """Rank and world as PyTorch knows them; as they were given to the call that is joining the group just now."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not targets.is_ready("torch.distributed"):
        return -1, -1
    try:
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except Exception:
        return -1, -1
    joining = targets.codes(targets.INIT)
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code in joining:
            given = [frame.f_locals.get(name) for name in ("rank", "world_size")]
            return tuple(value if isinstance(value, int) else -1 for value in given)
        frame = frame.f_back
    return -1, -1
