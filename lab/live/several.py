"""proof.py beside several jobs, in lanes side by side, within a time budget.

several.py OUT [--lanes 2] [--budget 560] [--each 175] JOB... [-- OPTIONS OF proof.py]

Each lane has processors and ports of its own; all share one MPS daemon. OUT gets, as jobs end: JOB.tar.xz (rings and results.json, with
--record-only or --keep-rings) as long as there is room, table.jsonl with a line a job, and JOB.log with what proof.py said. A job is
begun only if the budget has time for it, and is ended when its own time is up; nothing outlives this program.
"""
import argparse, ctypes, json, os, shutil, signal, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]
import mps

ap = argparse.ArgumentParser()
ap.add_argument("out")
ap.add_argument("--lanes", type=int, default=2)
ap.add_argument("--budget", type=float, default=560)
ap.add_argument("--each", type=float, default=175, help="seconds of a job")
ap.add_argument("--least", type=float, default=0, help="seconds below which no job is begun; by default, those of a job less 25")
ap.add_argument("--work", default="")
ap.add_argument("--room", type=float, default=56, help="MB of archives in OUT")
ap.add_argument("--most", type=float, default=15.5, help="MB of one archive")
ap.add_argument("--bundles", type=int, default=4, help="tar files that the archives are put into")
ap.add_argument("jobs", nargs="+")
words = sys.argv[1:]
cut = words.index("--") if "--" in words else len(words)
a, more = ap.parse_args(words[:cut]), words[cut + 1:]
a.out, a.work = os.path.abspath(a.out), os.path.abspath(a.work or tempfile.mkdtemp(prefix="faultline-several-"))
START = time.time()
KILLED = 4      # proof.py's word for it
GRACE_S = 25    # proof.py's own end: ranks that end, rings that are packed
lock = threading.Lock()
todo = list(dict.fromkeys(a.jobs))
running = {}
archives = []
jobs = {"begun": 0, "good": 0}


def left():
    return a.budget - (time.time() - START)


def say(*what):
    print(f"{time.time() - START:6.1f}", *what, flush=True)


def own_group(cores):
    def before():
        os.setsid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG
        if cores:
            os.sched_setaffinity(0, cores)

    return before


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def one(job, lane, cores, daemon, use):
    folder = f"{a.work}/{job}"
    seconds = min(a.each, left() - GRACE_S)
    # Another port each time: those of a job that ended stay in use for a minute.
    command = [sys.executable, f"{HERE}/proof.py", folder, "--job", job, "--seconds", str(round(seconds)), "--port", str(7077 + 100 * lane + use),
               "--master", str(29811 + 400 * lane + 23 * use), "--build", f"{a.work}/build", "--shared-mps", "--table", f"{a.out}/table.jsonl", *more]
    variables, killed, code = daemon.enter(), True, None
    began = time.time()
    try:
        with open(f"{a.out}/{job}.log", "wb") as log:
            process = subprocess.Popen(command, env=dict(os.environ, **variables), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       preexec_fn=own_group(cores))
        running[lane] = process.pid
        try:
            code = process.wait(max(1, min(seconds + GRACE_S, left())))
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
        killed = code != 0
    finally:
        if lane in running:
            end_group(running.pop(lane))
        daemon.leave(killed)
    with open(f"{a.out}/{job}.log", errors="replace") as log:
        last = (log.read().strip().splitlines() or [""])[-1]
    say(f"lane {lane} {job}: {time.time() - began:.0f} s, {'killed' if code is None else f'exit {code}'} {last[:200]}")
    archive = f"{folder}/{job}.tar.xz"
    with lock:
        jobs["good"] += code in (0, KILLED)
        if os.path.exists(archive):
            archives.append(archive)
            bundle()
    for name in ("service.log", "agent.log"):
        if os.path.exists(f"{folder}/{name}"):
            with open(f"{folder}/{name}", errors="replace") as text, open(f"{a.work}/programs.log", "a") as out:
                out.write(f"==== {job} {name}\n{text.read()[-3000:]}\n")


def bundle():
    """All archives in a few tar files; what was there stays until its successor is written."""
    bins, sizes = [[] for _ in range(a.bundles)], [0] * a.bundles
    for path in sorted(archives, key=os.path.getsize, reverse=True):
        size, least = os.path.getsize(path), sizes.index(min(sizes))
        if sizes[least] + size > a.most * 1e6 or sum(sizes) + size > a.room * 1e6:
            say("no room for", os.path.basename(path), size >> 10, "KB")
            continue
        bins[least].append(path)
        sizes[least] += size
    for i, part in enumerate(bins):
        if part:
            command = ["tar", "cf", f"{a.work}/.bundle"]
            for path in part:
                command += ["-C", os.path.dirname(path), os.path.basename(path)]
            subprocess.run(command, check=True, timeout=60)
            shutil.copy(f"{a.work}/.bundle", f"{a.out}/.bundle")
            os.rename(f"{a.out}/.bundle", f"{a.out}/rings{i}.tar")


def lane_of(lane, daemon):
    processors = sorted(os.sched_getaffinity(0))
    share = len(processors) // a.lanes
    cores = processors[lane * share: (lane + 1) * share] if a.lanes > 1 and share >= 4 else None
    use = 0
    while True:
        with lock:
            if not todo or left() - GRACE_S < (a.least or a.each - 25):
                return
            if jobs["begun"] >= 2 * a.lanes and not jobs["good"]:
                say(f"lane {lane}: nothing works; no more is tried")
                return
            job = todo.pop(0)
            jobs["begun"] += 1
        use += 1
        try:
            one(job, lane, cores, daemon, use)
        except Exception as e:
            say(f"lane {lane} {job}: {type(e).__name__}: {e}")


def joined_logs():
    """One file instead of many."""
    with open(f"{a.out}/jobs.log", "w") as out:
        for name in sorted(os.listdir(a.out)):
            if name.endswith(".log") and name != "jobs.log":
                with open(f"{a.out}/{name}", errors="replace") as text:
                    out.write(f"==== {name}\n{text.read()[-20000:]}\n")
                os.remove(f"{a.out}/{name}")
        if os.path.exists(f"{a.work}/programs.log"):
            with open(f"{a.work}/programs.log") as text:
                out.write(text.read())


def table():
    """The sum over all jobs, with lines of both kinds of run."""
    from outcome import last_line

    rows, falsely, healthy = [], 0, 0
    try:
        with open(f"{a.out}/table.jsonl") as file:
            for line in file:
                job = json.loads(line)
                rows += [row for row in job["faults"] if "outcome" in row]
                falsely += len(job.get("accusedForNothing", []))
                healthy += job.get("healthyIterations", 0)
    except OSError:
        return "no job has ended"
    return f"{last_line(rows, falsely)}; {healthy} healthy iterations" if rows else "recorded"


def main():
    sys.path.insert(0, HERE)
    os.makedirs(a.out, exist_ok=True)
    os.makedirs(f"{a.work}/build", exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lab = os.path.dirname(HERE)
    if "--gloo" not in more:
        subprocess.run(["make", "-s", "-C", os.path.join(os.path.dirname(lab), "probe", "nccl"), f"OUT={a.work}/build"], check=True, timeout=120)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", f"{a.work}/build/wire-fault.so", f"{lab}/wire-fault.c", "-ldl", "-pthread"], check=True,
                   timeout=60)
    daemon = mps.Shared(f"{a.work}/mps")
    # Threads of a program that ends with its main thread: PR_SET_PDEATHSIG is about the thread that started a process, so they stay.
    lanes = [threading.Thread(target=lane_of, args=(lane, daemon), daemon=True) for lane in range(a.lanes)]
    try:
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join(max(1, left()))
    finally:
        for pid in list(running.values()):
            end_group(pid)
        daemon.stop()
        joined_logs()
        say(table())


main()
