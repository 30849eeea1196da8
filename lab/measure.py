"""What the probe costs a step: interleaved runs of the same job with and without it, compared in pairs.

    measure.py OUT.json --library libfaultline.so [--variants base,plugin,…] [--rounds 5] [--budget 560] -- TRAIN…

A round runs every variant once, in an order that is shuffled anew (seeded), so that a drift of the machine hits all
alike. A run's figure is the median over its steps, warm-up left out, of the mean over ranks. The difference of a variant
is taken to `base` of the same round; its interval is a bootstrap over rounds. `again` is `base` once more: what it
differs by is the noise from run to run. A second call with the same OUT adds rounds to what is there.
Writes OUT.json and a Markdown table beside it.
"""

import argparse
import datetime
import json
import os
import platform
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import train as launcher

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_UP = 5


def variants(library):
    plugin, shim = ["--plugin", library], ["--shim", library]
    return {
        "base": [],
        "again": [],
        "plugin": plugin,
        "plugin:coll,p2p": [*plugin, "--mask", "coll,p2p"],
        "plugin:coll,p2p,kernel": [*plugin, "--mask", "coll,p2p,kernel"],
        "plugin:coll,p2p,kernel,proxy": [*plugin, "--mask", "coll,p2p,kernel,proxy"],
        "shim": shim,
        "kernels": [*shim, "--shim-records", "0", "--kernels", "1"],
        "kernels/10": [*shim, "--shim-records", "0", "--kernels", "10"],
        "python": ["--probe"],
        "all": [*plugin, *shim, "--kernels", "1", "--probe"],
        "recorder": ["--recorder", "on"],
        "recorder:timing": ["--recorder", "timing"],
    }


def run(extra, train, limit):
    """One run: its step time in ms, and what the probes wrote."""
    with tempfile.TemporaryDirectory(prefix="faultline-overhead-") as out:
        began, rings = time.monotonic(), launcher.ring_folder()
        try:
            done = subprocess.run([sys.executable, os.path.join(HERE, "train.py"), out, "--rings", rings,
                                   "--limit", str(limit), *train, *extra], capture_output=True, text=True, timeout=limit + 60)
            line = json.loads(done.stdout.strip().rpartition("\n")[2])
            wrote = written(rings, len(line["codes"]), line["steps"])
        except (subprocess.TimeoutExpired, ValueError) as error:
            return {"failed": repr(error)[:300]}
        finally:
            shutil.rmtree(rings, ignore_errors=True)
        if any(line["codes"]):
            with open(os.path.join(out, "rank0.log"), errors="replace") as log:
                return {"failed": f"exit codes {line['codes']}: {log.read()[-500:]}"}
        steps = [statistics.fmean(of_ranks) for of_ranks in zip(*line["stepMs"])][WARM_UP:]
        if len(steps) < 5:
            return {"failed": f"{len(steps)} steps after the warm-up are too few"}
        return {"ms": statistics.median(steps), "meanMs": statistics.fmean(steps), "steps": len(steps),
                "seconds": round(time.monotonic() - began, 1), **wrote}


def written(rings, ranks, steps):
    """Records for each rank and step, by writer, and how many were dropped in all (probe/RING.md)."""
    counts, dropped = {}, 0
    for name in os.listdir(rings):
        if name.endswith(".ring"):
            with open(os.path.join(rings, name), "rb") as file:
                header = file.read(4096)
            writer = name.split(".")[-2]
            counts[writer] = counts.get(writer, 0) + struct.unpack_from("<Q", header, 512)[0]
            dropped += struct.unpack_from("<Q", header, 576)[0]
    return {"recordsPerStep": {writer: round(count / ranks / steps, 1) for writer, count in counts.items()}, "dropped": dropped}


def interval(differences, seed=1, draws=10_000):
    """The middle 95 % of the mean of resampled rounds."""
    if len(differences) < 2:
        return None
    rng = random.Random(seed)
    means = sorted(statistics.fmean(rng.choices(differences, k=len(differences))) for _ in range(draws))
    return [means[int(draws * 0.025)], means[int(draws * 0.975)]]


def summary(rounds, names):
    rows = []
    for name in names:
        figures = [r[name]["ms"] for r in rounds if "ms" in r.get(name, {})]
        if not figures:
            continue
        last = [r[name] for r in rounds if "ms" in r.get(name, {})][-1]
        row = {"variant": name, "runs": len(figures), "medianMs": statistics.median(figures),
               "meanMs": statistics.fmean(r[name]["meanMs"] for r in rounds if "ms" in r.get(name, {})),
               "spreadPercent": 100 * statistics.stdev(figures) / statistics.fmean(figures) if len(figures) > 1 else None,
               "recordsPerStep": last["recordsPerStep"], "dropped": last["dropped"]}
        pairs = [(r["base"]["ms"], r[name]["ms"]) for r in rounds if "ms" in r.get(name, {}) and "ms" in r.get("base", {})]
        if name != "base" and pairs:
            differences = [100 * (with_it / without - 1) for without, with_it in pairs]
            row.update(pairs=len(pairs), differencePercent=statistics.fmean(differences),
                       medianDifferencePercent=statistics.median(differences), interval95=interval(differences))
        rows.append(row)
    return rows


def table(rows):
    lines = ["| variant | runs | step, median ms | run to run (s.d.) | difference to base | 95 % interval "
             "| records a step and rank |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        spread = "" if r["spreadPercent"] is None else f"{r['spreadPercent']:.2f} %"
        difference = f"{r['differencePercent']:+.2f} %" if "differencePercent" in r else ""
        between = "{:+.2f} … {:+.2f} %".format(*r["interval95"]) if r.get("interval95") else ""
        lines.append(f"| {r['variant']} | {r['runs']} | {r['medianMs']:.3f} | {spread} | {difference} | {between} "
                     f"| {sum(r['recordsPerStep'].values()):.0f} |")
    return "\n".join(lines) + "\n"


def versions():
    code = "import json,torch;print(json.dumps({'torch':torch.__version__,'nccl':'.'.join(map(str,torch.cuda.nccl.version())) " \
           "if torch.cuda.is_available() else None,'gpu':torch.cuda.get_device_name() if torch.cuda.is_available() else None}))"
    try:
        told = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120).stdout)
    except (subprocess.TimeoutExpired, ValueError):
        told = {}
    return dict(told, python=platform.python_version(), machine=platform.machine(), cores=os.cpu_count())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--library", default=os.path.join(os.path.dirname(HERE), "probe", "nccl", "build", "libfaultline.so"))
    parser.add_argument("--variants", help="separated by ';', since masks have commas; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=560, help="seconds: no run begins that would not end in them")
    parser.add_argument("--limit", type=float, default=120, help="seconds of one run")
    parser.add_argument("--seed", type=int, default=1)
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    a = parser.parse_args(sys.argv[1:cut])
    train = sys.argv[cut + 1:]
    known = variants(os.path.abspath(a.library))
    names = a.variants.split(";") if a.variants else list(known)
    if "base" not in names or not set(names) <= set(known):
        parser.error(f"variants are {'; '.join(known)}, and base is one of them")
    result = {"date": datetime.date.today().isoformat(), "versions": versions(), "train": train, "rounds": []}
    if os.path.exists(a.out):
        with open(a.out) as file:
            result["rounds"] = json.load(file)["rounds"]
    end, longest = time.monotonic() + a.budget, 0.0
    for number in range(a.rounds):
        order = list(names)
        random.Random(f"{a.seed} {len(result['rounds'])}").shuffle(order)
        done = {}
        result["rounds"].append(done)
        for name in order:
            began = time.monotonic()
            if began + longest * 1.1 > end:
                print(f"the budget is spent in round {number + 1}", file=sys.stderr)
                break
            done[name] = run(known[name], train, min(a.limit, end - began))
            longest = max(longest, time.monotonic() - began)
            print(name, json.dumps(done[name]), file=sys.stderr, flush=True)
            result["summary"] = summary(result["rounds"], list(known))
            with open(a.out, "w") as file:
                json.dump(result, file, indent=1)
        else:
            continue
        break
    text = table(summary(result["rounds"], list(known)))
    with open(os.path.splitext(a.out)[0] + ".md", "w") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
