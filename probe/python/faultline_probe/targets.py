"""What is traced: "module@qualified.name", and where the code behind such a name really lies.

The lists are data, so that another framework is a few lines here or a word in FAULTLINE_TRACE (FLARE §4.1).
"""

import inspect
import sys
import types

GC = "gc"
STEP = "torch.optim@Optimizer.step"
INIT = "torch.distributed@init_process_group"

_DISTRIBUTED = (
    "init_process_group new_group barrier monitored_barrier all_reduce all_reduce_coalesced broadcast reduce all_gather "
    "all_gather_into_tensor all_gather_coalesced reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single gather "
    "scatter send recv isend irecv batch_isend_irecv all_gather_object gather_object broadcast_object_list "
    "scatter_object_list"
)

DEFAULT = (
    "torch.utils.data@DataLoader.__next__",
    "torch.cuda@synchronize",
    "torch.cuda@Stream.synchronize",
    "torch.cuda@Event.synchronize",
    "torch.cuda@empty_cache",
    *(f"torch.distributed@{name}" for name in _DISTRIBUTED.split()),
    STEP,
    GC,
)

# Where code lies that people know under another name. The first that is there counts; "f>g" is the function g that is
# written inside f: Optimizer gives every class' step the same wrapper, which lies in another place before PyTorch 2.
ALIASES = {
    "torch.utils.data@DataLoader.__next__": ("torch.utils.data.dataloader@_BaseDataLoaderIter.__next__",),
    STEP: ("torch.optim.optimizer@Optimizer.profile_hook_step>wrapper",
           "torch.optim.optimizer@Optimizer._hook_for_profile>wrapper"),
}


def parse(text):
    """(targets, what is no target). Without words the default; "default" among the words adds it. Steps are always traced:
    an iteration is what everything else is measured by."""
    if not (text or "").strip():
        return list(DEFAULT), []
    wanted, bad = [], []
    for word in (word.strip() for word in text.split(",")):
        if word == "default":
            wanted += DEFAULT
        elif word == GC or _is_target(word):
            wanted.append(word)
        elif word:
            bad.append(word)
    return list(dict.fromkeys([*wanted, STEP])), bad


def _is_target(word):
    module, sign, path = word.partition("@")
    return bool(sign) and all(part.isidentifier() for part in (module + "." + path.replace(">", ".")).split("."))


def module_of(target):
    return ALIASES.get(target, (target,))[0].partition("@")[0]


def is_ready(module):
    """Whether the job has imported it, to the end."""
    found = sys.modules.get(module)
    return found is not None and not getattr(getattr(found, "__spec__", None), "_initializing", False)


def codes(target):
    """The code objects behind a name whose module is there; none where it has none."""
    for place in ALIASES.get(target, (target,)):
        module, _, path = place.partition("@")
        outer, *inner = path.split(">")
        try:
            thing = sys.modules[module]
            for part in outer.split("."):
                # Not getattr: a module that loads its parts when they are asked for must not do so for us.
                thing = inspect.getattr_static(thing, part)
        except (KeyError, AttributeError):
            continue
        code = _code(thing)
        for name in inner:
            code = code and _within(code, name)
        if code:
            return [code]
    return []


def _code(thing):
    # Decorators share one wrapper's code among all that they decorate: what they wrap tells the functions apart.
    if isinstance(thing, property):
        thing = thing.fget
    try:
        thing = inspect.unwrap(getattr(thing, "__func__", thing))
    except ValueError:
        return None
    code = getattr(thing, "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def _within(code, name):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name:
                return constant
            deeper = _within(constant, name)
            if deeper:
                return deeper
    return None
