"""One scenario: starts the job, waits until its fault has worked, copies rings and flight recorders, packs them up.

    collect.py OUT.tar.gz [--when standing|step=N|end] [--still 6] [--recorder] -- TRAIN_ARGUMENTS…

  standing   no rank has ended a step for --still seconds (and some have ended one): a hang
  step=N     every rank has ended step N, and the job goes on: a slow one
  end        all ranks have ended: everything that was ever recorded

Every wait has a limit, all processes end with this one, and the pack is made whatever happened; `collected.txt` in it
says what did. Prints the same as one line. In the pack: rings/ and recorder/, what a diagnosis may see; about/, logs.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import snapshot
import train

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = {r"fr_end_rank_": "recorder", r".*\.validation\.json$": "validation", r".*\.(log|json|txt)$|times\.|pid\.": "about"}


def steps(run):
    """Steps that each rank has ended."""
    counts = []
    for name in sorted(os.listdir(run)):
        if name.startswith("times.rank"):
            with open(os.path.join(run, name), "rb") as file:
                counts.append(file.read().count(b"\n"))
    return counts


def await_moment(job, run, when, still, deadline):
    """Why it ended: the moment came ("yes"), the job ended before ("ended"), or the time was up ("late")."""
    seen, changed = [], time.monotonic()
    while time.monotonic() < deadline:
        if job.poll() is not None:
            return "yes" if when == "end" else "ended"
        counts = steps(run) if os.path.isdir(run) else []
        if counts != seen:
            seen, changed = counts, time.monotonic()
        if when == "standing" and any(counts) and time.monotonic() - changed >= still:
            return "yes"
        if when.startswith("step=") and counts and min(counts) > int(when[5:]):
            return "yes"
        time.sleep(0.05)
    return "late"


def end(job):
    """The launcher ends its ranks and the MPS daemon when told to."""
    if job.poll() is None:
        job.send_signal(signal.SIGTERM)
        try:
            job.wait(60)  # 20 s for its ranks, 10 s for the daemon
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()


def collect(a, work):
    run, out = os.path.join(work, "run"), os.path.join(work, "out")
    rings, about = train.ring_folder(), os.path.join(out, "about")
    os.makedirs(about)
    told = {"when": a.when, "arguments": a.train}
    with open(os.path.join(about, "launcher.txt"), "wb") as log:
        job = subprocess.Popen([sys.executable, os.path.join(HERE, "train.py"), run, "--rings", rings,
                                "--limit", str(a.limit + 30), *a.train], stdout=log, stderr=log)
        began = time.monotonic()
        try:
            told["moment"] = await_moment(job, run, a.when, a.still, began + a.limit)
            told["seconds"] = round(time.monotonic() - began, 1)
            told["steps"] = steps(run) if os.path.isdir(run) else []
            alive = job.poll() is None
            told.update(snapshot.take(rings, out, run if a.recorder and alive else None, a.wait,
                                      stacks=a.when == "standing" and alive))
        except Exception as error:  # whatever is there is packed, and the job ended
            told["error"] = repr(error)
        finally:
            end(job)
            shutil.rmtree(rings, ignore_errors=True)
    told["exit"] = job.returncode
    if not os.path.getsize(log.name):
        os.remove(log.name)
    for name in os.listdir(run) if os.path.isdir(run) else []:
        folder = next((folder for start, folder in KEPT.items() if re.match(start, name)), None)
        if folder and os.path.getsize(os.path.join(run, name)):
            os.makedirs(os.path.join(out, folder), exist_ok=True)
            shutil.copyfile(os.path.join(run, name), os.path.join(out, folder, name))
    with open(os.path.join(about, "collected.txt"), "w") as file:
        json.dump(told, file)
    return told, out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack")
    parser.add_argument("--when", default="standing")
    parser.add_argument("--still", type=float, default=6)
    parser.add_argument("--recorder", action="store_true", help="flight-recorder dumps through their pipes")
    parser.add_argument("--wait", type=float, default=8, help="seconds that the dumps may take")
    parser.add_argument("--limit", type=float, default=90, help="seconds until the moment must have come")
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    a = parser.parse_args(sys.argv[1:cut])
    a.train = sys.argv[cut + 1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name = os.path.basename(a.pack)[: -len(".tar.gz")] if a.pack.endswith(".tar.gz") else parser.error("OUT ends in .tar.gz")
    work = tempfile.mkdtemp(prefix="faultline-collect-")
    try:
        told, out = collect(a, work)
        os.makedirs(os.path.dirname(os.path.abspath(a.pack)), exist_ok=True)
        with tarfile.open(a.pack, "w:gz") as pack:
            pack.add(out, arcname=name)
        print(json.dumps(dict(scenario=name, **told, packBytes=os.path.getsize(a.pack))), flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if told.get("moment") == "yes" else 1


if __name__ == "__main__":
    sys.exit(main())
