"""The matrix products that test a GPU (Greyhound, sections 4.3 and 6): one shape for all, so that times compare."""

import time

# By type the bytes that two operands and the product take per element; fp8 is made out of bfloat16.
_DTYPES = {"bfloat16": 6, "float16": 6, "float32": 12, "float8_e4m3fn": 6}
_SIDES = (256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
_GPU_BURST_MS, _CPU_BURST_MS = 10.0, 20.0


def _operands(torch, name, side, device):
    dtype = getattr(torch, name)
    # A generator of its own: the job's random numbers stay as they are. Zeros would draw too little power.
    generator = torch.Generator(device=device)
    generator.manual_seed(1)
    made_as = torch.bfloat16 if name.startswith("float8") else dtype
    make = lambda: torch.empty(side, side, device=device, dtype=made_as).uniform_(-0.5, 0.5, generator=generator).to(dtype)
    return make(), make()


def _product(torch, name, side, device):
    """A function that starts one product; None where this device or PyTorch has none of this type."""
    if not hasattr(torch, name):
        return None
    try:
        a, b = _operands(torch, name, side, device)
        if name.startswith("float8"):
            one = torch.ones((), device=device)
            b = b.t()  # the second must be column-major
            run = lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        else:
            out = torch.empty(side, side, device=device, dtype=a.dtype)
            run = lambda: torch.mm(a, b, out=out)
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return run
    except (RuntimeError, AttributeError, TypeError, ValueError, NotImplementedError):
        return None


def _burst_ms(torch, run, count, device):
    if device.type == "cuda":
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)
    # The time that this thread had a core: ranks that share cores would otherwise measure their neighbours.
    began = time.thread_time()
    for _ in range(count):
        run()
    return (time.thread_time() - began) * 1e3


def _give_back(torch, device):
    if device.type == "cuda":
        torch.cuda.empty_cache()


def plan(torch, device, most_bytes):
    """By type the side of the matrices and how many products one measurement takes: about 10 ms on a GPU, 20 on a CPU."""
    target = _GPU_BURST_MS if device.type == "cuda" else _CPU_BURST_MS
    chosen = {}
    for name, bytes_per_element in _DTYPES.items():
        if device.type == "cpu" and name != "float32":
            continue  # half precision is emulated on most CPUs, and says nothing about them
        for side in _SIDES:
            if bytes_per_element * side * side > most_bytes:
                break
            run = None  # the smaller ones' memory first
            _give_back(torch, device)
            run = _product(torch, name, side, device)
            if run is None:
                break
            one = min(_burst_ms(torch, run, 1, device) for _ in range(2))
            if one > 2 * target and name in chosen:
                break
            chosen[name] = (side, max(1, min(1000, round(target / max(one, 1e-3)))))
        run = None
        _give_back(torch, device)
    return chosen


def measure(torch, device, chosen, repeats):
    """The report's "gemm": milliseconds of one product, a number a repeat."""
    results = []
    for name, (side, count) in chosen.items():
        run = _product(torch, name, side, device)
        if run is None:
            continue
        _burst_ms(torch, run, count, device)
        ms = [_burst_ms(torch, run, count, device) / count for _ in range(repeats)]
        run = None
        _give_back(torch, device)
        results.append({"dtype": name, "m": side, "n": side, "k": side, "ms": [round(value, 6) for value in ms]})
    return results
