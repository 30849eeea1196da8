"""What the agent asks for through the ring's header and the training thread does at the end of an iteration: steps of
torch.profiler (FLARE §4), and the tests of GPUs and links (Greyhound §4.3)."""

import gzip
import importlib
import json
import os
import shutil
import sys
import threading

from . import ring as ring_file

_MOST_STEPS = 1000
_MOST_ROUNDS = 64


class Requests:
    def __init__(self, probe):
        self._probe = probe
        self._profiler = None
        self._profile_request = 0
        self._steps_left = 0
        self._tested = (0, [])  # the request, and the reports of its rounds so far

    def at_iteration(self, ring, number):
        if self._profiler is not None:
            self._follow_profile(ring)
        elif ring.get(ring_file.PROFILE_WANTED) not in (ring.get(ring_file.PROFILE_ANSWERED), self._profile_request):
            self._start_profile(ring)
        if ring.get(ring_file.VALIDATION_WANTED) != ring.get(ring_file.VALIDATION_ANSWERED):
            self._validate(ring, number)

    def _start_profile(self, ring):
        self._profile_request = ring.get(ring_file.PROFILE_WANTED)
        self._steps_left = steps = min(max(ring.get(ring_file.PROFILE_STEPS), 1), _MOST_STEPS)
        try:
            profiler = sys.modules["torch"].profiler
            action = profiler.ProfilerAction

            def schedule(step):
                # Without a schedule the profiler marks no steps in the trace.
                return action.RECORD if step < steps - 1 else action.RECORD_AND_SAVE if step == steps - 1 else action.NONE

            part = self._trace_path(ring) + ".part"
            self._profiler = profiler.profile(
                schedule=schedule, record_shapes=True, on_trace_ready=lambda done: done.export_chrome_trace(part))
            self._profiler.start()
        except Exception:
            # Another profiler is on, or PyTorch has none: answered without a trace.
            self._end_profile(ring)

    def _follow_profile(self, ring):
        self._steps_left -= 1
        try:
            self._profiler.step()
            if self._steps_left > 0:
                return
            self._profiler.stop()
            self._profiler = None
            self._probe.renew_hook()
            # Compressing takes as long as the export itself: the training does not wait for it.
            threading.Thread(
                target=_compress, args=(ring, self._trace_path(ring), self._profile_request), daemon=True).start()
        except Exception:
            self._end_profile(ring)

    def _trace_path(self, ring):
        return f"{ring.path}.rank{self._probe.rank_text()}.kineto.json"

    def _end_profile(self, ring):
        """Not as it should: answered, without a file."""
        self._profiler = None
        self._probe.renew_hook()
        ring.put(ring_file.PROFILE_ANSWERED, self._profile_request)

    def _validate(self, ring, number):
        wanted = ring.get(ring_file.VALIDATION_WANTED)
        try:
            request = json.loads(ring.text(ring_file.VALIDATION, ring_file.VALIDATION_BYTES))
            at, rounds = int(request["atIteration"]), min(max(int(request.get("rounds", 1)), 1), _MOST_ROUNDS)
        except (ValueError, TypeError, KeyError):
            ring.put(ring_file.VALIDATION_ANSWERED, wanted)
            return
        if number < at:
            return
        if number == at:
            self._tested = (wanted, [])
        asked, reports = self._tested
        # Who is past it must not begin: its peers would be in the tests at another moment, or not at all.
        if asked == wanted and number == at + len(reports):
            try:
                reports.append(importlib.import_module("faultline_probe.validation").run(dict(request, atIteration=number)))
                # Whoever asked need not wait for the last round.
                report = _together(reports) if rounds > 1 else reports[0]
                _replace(ring.path + ".validation.json", json.dumps(report).encode())
                # A remark: somebody did not come, or the time was up. Nobody is kept waiting for it again.
                if len(reports) < rounds and "remark" not in reports[-1]:
                    return
            except Exception:
                pass
        ring.put(ring_file.VALIDATION_ANSWERED, wanted)


def _together(reports):
    """One report of all rounds so far; transfers say after which iteration they were tested."""
    transfers = [dict(each, iteration=report["iteration"]) for report in reports for each in report["transfers"]]
    took = round(sum(report["tookMs"] for report in reports), 3)
    return dict(reports[-1], iteration=reports[0]["iteration"], rounds=len(reports), tookMs=took, transfers=transfers)


def _compress(ring, path, request):
    try:
        with open(path + ".part", "rb") as plain, gzip.open(path + ".gz.part", "wb", 1) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
        os.replace(path + ".gz.part", path + ".gz")
    except OSError:
        _remove(path + ".gz.part")
    _remove(path + ".part")
    ring.put(ring_file.PROFILE_ANSWERED, request)


def _replace(path, data):
    """Whoever reads sees the old file or the new one, never half of it."""
    try:
        with open(path + ".part", "wb") as file:
            file.write(data)
        os.replace(path + ".part", path)
    except OSError:
        _remove(path + ".part")


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass
