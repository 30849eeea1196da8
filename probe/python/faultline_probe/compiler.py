"""torch.compile takes every Python function that runs in a compiled region for the job's, a hook's too: it is told to leave
ours as they are."""

import sys
import types


def leave_us_out():
    """Where this PyTorch has a compiler; the probe imports none."""
    skip = getattr(sys.modules.get("torch._C._dynamo.eval_frame"), "skip_code", None)
    if skip is None:
        return
    try:
        for code in _our_codes():
            skip(code)
    except Exception:
        pass  # Then it compiles some functions of ours: slower, once.


def _our_codes():
    package = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if module is None or not (name == package or name.startswith(package + ".")):
            continue
        for thing in list(vars(module).values()):
            members = vars(thing).values() if isinstance(thing, type) and thing.__module__ == name else (thing,)
            for member in members:
                if isinstance(member, types.FunctionType) and member.__module__ == name:
                    yield from _nested(member.__code__)


def _nested(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
