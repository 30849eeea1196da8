"""What the hook costs on this machine and this Python: python -m faultline_probe.bench

Nanoseconds of a call of an empty Python function that is not traced, of one that is, and of a function in C, without the
probe and with it: CPU time, medians of interleaved runs in processes of their own.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

_CALLS = 100_000
_PAIRS = 5


def plain():
    pass


def traced():
    pass


def _measure():
    def per_call(function):
        numbers = range(_CALLS)
        begin = time.thread_time_ns()
        for _ in numbers:
            function()
        return (time.thread_time_ns() - begin) / _CALLS

    import faultline_probe

    probe = faultline_probe._probe
    if probe is not None:
        # What runs as __main__ is found here under its own name.
        probe._resolve()
    for function in (plain, traced):
        per_call(function)
    source = "no probe"
    if probe is not None and probe.ring is not None:
        source = probe.ring.text(384, 32)
        before = probe.ring.head()
        traced()
        assert probe.ring.head() == before + 1, "the traced function leaves no record"
    print(json.dumps({"source": source, "plain": per_call(plain), "traced": per_call(traced), "c": per_call(time.time)}))


def main():
    base = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE")}
    with tempfile.TemporaryDirectory() as rings:
        probed = dict(base, FAULTLINE_DIR=rings, FAULTLINE_TRACE="__main__@traced", FAULTLINE_SIGNALS="0")
        library = os.environ.get("FAULTLINE_LIBRARY")
        ways = [
            ([], base),
            (["-m", "faultline_probe"], dict(probed, **({"FAULTLINE_LIBRARY": library} if library else {}))),
            (["-m", "faultline_probe"], dict(probed, FAULTLINE_LIBRARY=os.path.join(rings, "none"))),
        ]
        results = {}
        for _ in range(_PAIRS):
            for words, environment in ways:
                # Nothing is measured in the process that measures the others.
                command = [sys.executable, *words, os.path.abspath(__file__), "--measure"]
                path = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
                environment = dict(environment, PYTHONPATH=path)
                answer = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)
                results.setdefault(answer.pop("source"), []).append(answer)
    print(f"Python {sys.version.split()[0]}, ns per call (what the probe adds)")
    bare = {name: statistics.median(run[name] for run in results["no probe"]) for name in ("plain", "traced", "c")}
    for source, runs in results.items():
        cells = []
        for name, words in (("plain", "not traced"), ("traced", "traced"), ("c", "in C")):
            value = statistics.median(run[name] for run in runs)
            cells.append(f"{words} {value:6.0f} ({value - bare[name]:+5.0f})")
        print(f"  {source:26}" + "   ".join(cells))


if __name__ == "__main__":
    _measure() if "--measure" in sys.argv else main()
