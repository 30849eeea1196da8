"""What each kind of NCCL's events costs a step: one job, its plug-in switched between masks every few seconds.

    toggle.py OUT.json [--masks off,coll+p2p,…] [--block 3] [--seconds 110] -- TRAIN…

Runs of the same job differ by 10 % and more on a shared GPU; steps of one run a few seconds apart differ by little. So
the agent's word in the ring's header (RING.md, 1084) switches the events that NCCL tells the plug-in, in a running job, in
an order that is shuffled anew each round. Steps of the second in which the word is taken up are left out. Differences are
taken to `off` of the same round; the interval is a bootstrap over rounds.
"""

import argparse
import glob
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import measure

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(os.path.dirname(HERE), "probe", "nccl", "build", "libfaultline.so")
MASK_WANTED = 1084
SETTLES = 1.4  # the plug-in looks once a second
WORDS = {"off": 1, "coll+p2p": 1 + 6, "coll+p2p+kernel": 1 + 6 + 64, "coll+p2p+kernel+proxy": 1 + 6 + 64 + 8, "all": 0}


def switch(rings, word):
    for path in glob.glob(os.path.join(rings, "*.native.ring")):
        with open(path, "r+b") as ring:
            ring.seek(MASK_WANTED)
            ring.write(struct.pack("<I", word))


def steps(out):
    with open(os.path.join(out, "times.rank0")) as file:
        return [float(line) for line in file if line.endswith("\n")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--masks", default="off,coll+p2p,coll+p2p+kernel,all")
    parser.add_argument("--block", type=float, default=3)
    parser.add_argument("--seconds", type=float, default=110)
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    a = parser.parse_args(sys.argv[1:cut])
    names = a.masks.split(",")
    rounds = []
    with tempfile.TemporaryDirectory(prefix="faultline-toggle-") as out, tempfile.TemporaryDirectory(dir="/dev/shm") as rings:
        command = [sys.executable, os.path.join(HERE, "train.py"), out, "--plugin", LIBRARY, "--rings", rings, "--steps", "1000000",
                   "--limit", str(a.seconds + 60), *sys.argv[cut + 1:]]
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + a.seconds
            while job.poll() is None and time.monotonic() < end:
                if os.path.exists(os.path.join(out, "times.rank0")) and len(steps(out)) > 30:
                    break
                time.sleep(0.1)
            rng = random.Random(1)
            while job.poll() is None and time.monotonic() + len(names) * (SETTLES + a.block) < end:
                done = {}
                for name in rng.sample(names, len(names)):
                    switch(rings, WORDS[name])
                    time.sleep(SETTLES)
                    before = len(steps(out)) + 1  # the step under way is half of the mask before
                    time.sleep(a.block)
                    block = steps(out)[before:]
                    if block:
                        done[name] = {"ms": statistics.median(block), "meanMs": statistics.fmean(block), "steps": len(block)}
                rounds.append(done)
        finally:
            job.terminate()
            job.wait()
    rows = []
    for name in names:
        pairs = [(r["off"]["ms"], r[name]["ms"]) for r in rounds if "off" in r and name in r]
        differences = [100 * (with_it / without - 1) for without, with_it in pairs]
        if pairs:
            rows.append({"mask": name, "rounds": len(pairs), "medianMs": statistics.median(ms for _, ms in pairs),
                         "differencePercent": statistics.fmean(differences), "interval95": measure.interval(differences)})
    with open(a.out, "w") as file:
        json.dump({"train": sys.argv[cut + 1:], "versions": measure.versions(), "rounds": rounds, "summary": rows}, file, indent=1)
    for row in rows:
        between = "{:+.2f} … {:+.2f} %".format(*row["interval95"]) if row["interval95"] else ""
        print(f"| {row['mask']} | {row['rounds']} | {row['medianMs']:.3f} | {row['differencePercent']:+.2f} % | {between} |", flush=True)


if __name__ == "__main__":
    main()
