"""The C library beside the Python probe (probe/nccl/pyhook.c): cheaper hooks, exit codes and fatal signals."""

import ctypes

from . import settings

ABI = 3


class _Interpreter(ctypes.Structure):
    """FlInterpreter of pyhook.h."""

    _fields_ = [(name, ctypes.c_void_p) for name in (
        "set_profile", "frame_code", "inc_ref", "dec_ref", "call_object", "clear_error", "error_matches",
        "keyboard_interrupt", "interrupt", "new_function", "none")]


def _address(name):
    function = getattr(ctypes.pythonapi, name, None)
    return ctypes.cast(function, ctypes.c_void_p).value if function else None


class Native:
    """`profile`, `trace`, `append` … of the library. What it may still look at after Python has ended stays alive."""

    def __init__(self, library):
        self._library = library
        self._kept = []
        pointer, u8, u32, u64, boolean = (ctypes.c_void_p, ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_bool)
        library.fl_py_interpreter.argtypes = [ctypes.POINTER(_Interpreter)]
        library.fl_py_ring.argtypes = [pointer, pointer]
        library.fl_py_trace.argtypes = [pointer, ctypes.c_uint16, boolean, pointer]
        library.fl_py_trace.restype = boolean
        library.fl_py_profile.argtypes = [boolean]
        library.fl_py_callback.argtypes = [ctypes.c_int]
        library.fl_py_callback.restype = ctypes.py_object
        library.fl_py_append.argtypes = [u8, u8, u64, u32, ctypes.c_int32, u64, u64, u32, u32]
        library.fl_py_append.restype = None
        library.fl_watch_signals.argtypes = [pointer]
        library.fl_guard.argtypes = [pointer, ctypes.c_size_t, boolean]
        # PyFrame_GetCode is not in Python 3.8: C then looks into the frame.
        addresses = [_address(name) for name in (
            "PyEval_SetProfile", "PyFrame_GetCode", "Py_IncRef", "Py_DecRef", "PyObject_CallObject", "PyErr_Clear",
            "PyErr_ExceptionMatches", "PyErr_SetInterrupt", "PyCFunction_NewEx")]
        if any(address is None for i, address in enumerate(addresses) if i != 1):
            raise OSError("this Python lacks what the hook needs")
        *functions, matches, interrupt, new_function = addresses
        library.fl_py_interpreter(
            _Interpreter(*functions, matches, id(KeyboardInterrupt), interrupt, new_function, id(None)))
        self.append = library.fl_py_append
        self.profile = library.fl_py_profile

    def callback(self, which):
        """A function for sys.monitoring: 0 start, 1 return, 2 unwind."""
        return self._library.fl_py_callback(which)

    def trace(self, code, name, is_recorded, on_return):
        return self._library.fl_py_trace(self._keep(code), name, is_recorded, self._keep(on_return))

    def set_ring(self, ring, on_first_call):
        """Records go to this ring; None: nowhere, and the first call asks for one."""
        address = None
        if ring is not None:
            view = ctypes.c_char.from_buffer(ring.memory)
            self._keep(view)
            address = ctypes.addressof(view)
        self._library.fl_py_ring(address, self._keep(on_first_call))
        # In a fork's child the handler has nothing to note until the child has a ring.
        self._library.fl_watch_signals(address)

    def guard(self, ring, is_over_ours):
        """A truncated ring kills nobody; `is_over_ours`: the handler that SIGBUS has now was put there by the probe."""
        address = ctypes.addressof(ctypes.c_char.from_buffer(ring.memory))
        self._library.fl_guard(address, len(ring.memory), is_over_ours)

    def _keep(self, thing):
        if thing is None:
            return None
        # Never given back: hooks and the exit handler run until the process is gone, after Python's own objects.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
        self._kept.append(thing)
        return id(thing)


def load():
    """The library, or None where it is not built, of another version, or not for this machine."""
    place = settings.library_path()
    if place is None:
        return None
    try:
        # PyDLL: the GIL is kept, for these calls touch Python's objects.
        library = ctypes.PyDLL(place)
        return Native(library) if library.fl_py_abi() == ABI else None
    except (OSError, AttributeError):
        return None
