"""Records the runs of plan.py, one after another, each into a .tar.gz with its truth.

record.py WORK PACKS [--budget SECONDS] [--trees DIR] [--afresh] NAME...     (a name may end in *)

Each run has an MPS daemon, a torchrun and a time limit of its own. A run that stands still is dumped and ended. PACKS gets
a few tar files of recordings, rewritten after every run, so nothing is lost when the time is up.
"""
import argparse, fnmatch, glob, json, multiprocessing, os, re, runpy, shutil, signal, statistics, subprocess, sys, tarfile, time

import plan
from causes import CAUSES
from preload import preload

ap = argparse.ArgumentParser()
ap.add_argument("work")
ap.add_argument("packs")
ap.add_argument("--budget", type=float, default=540)
ap.add_argument("--trees", default="")
ap.add_argument("--afresh", action="store_true", help="also families whose earlier run did not start")
ap.add_argument("--fork", action="store_true", help="ranks are forked with PyTorch loaded: a start takes half the time")
ap.add_argument("--port", type=int, default=21000)
ap.add_argument("names", nargs="+")
a = ap.parse_args()
HERE = os.path.dirname(os.path.abspath(__file__))
START = time.time()


def pids(folder):
    for path in glob.glob(f"{folder}/pid.*"):
        try:
            yield int(open(path).read())
        except (OSError, ValueError):
            pass


def signal_all(folder, sig):
    for pid in pids(folder):
        try:
            os.kill(pid, sig)
        except OSError:
            pass


def ring(run, folder):
    """Asks every rank for a dump through its pipe, as an operator would."""
    for rank in range(8):
        if rank == run.get("no_dump"):
            continue
        try:
            fd = os.open(f"{folder}/pipe_{rank}.pipe", os.O_WRONLY | os.O_NONBLOCK)
            os.write(fd, b"1\n")
            os.close(fd)
        except OSError as e:
            print(f"   pipe of rank {rank}: {e}", flush=True)


def as_rank(*command):
    """A rank that is forked with PyTorch already loaded."""
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, signal.SIG_DFL)
    sys.argv = list(command)
    runpy.run_path(command[0], run_name="__main__")


def launch(options, command, env, log, cwd):
    """torchrun's own launcher, with forked ranks."""
    import torch
    from torch.distributed.launcher.api import elastic_launch
    from torch.distributed.run import config_from_args, parse_args

    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    torch.set_num_threads(1)
    config, _, _ = config_from_args(parse_args([*options, command[0]]))
    config.start_method = "fork"
    elastic_launch(config, entrypoint=as_rank)(*command)


class Forked:
    """A launcher that is forked off this program: what every job imports is imported once."""

    def __init__(self, *args):
        self.process = multiprocessing.get_context("fork").Process(target=launch, args=args)
        self.process.start()

    @property
    def returncode(self):
        return self.process.exitcode

    def poll(self):
        return self.process.exitcode

    def kill(self):
        self.process.kill()

    def wait(self):
        self.process.join()


class Apart:
    """Eight ranks started one by one, as on hosts that know nothing of each other."""

    def __init__(self, command, env, folder, port, cwd):
        self.ranks = []
        for r in range(8):
            mine = dict(env, RANK=str(r), WORLD_SIZE="8", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            with open(f"{folder}/rank{r}.log", "wb") as f:
                self.ranks.append(subprocess.Popen([sys.executable, *command], env=mine, stdout=f, stderr=f, cwd=cwd))

    def poll(self):
        codes = [p.poll() for p in self.ranks]
        return None if None in codes else max(codes, key=abs)

    returncode = property(poll)

    def kill(self):
        for p in self.ranks:
            p.kill()

    def wait(self):
        for p in self.ranks:
            p.wait()


def environment(run, folder, mps):
    buffer = str(run.get("buffer", 2500))
    env = dict(
        os.environ, CUDA_MPS_PIPE_DIRECTORY=mps, CUDA_MPS_LOG_DIRECTORY=mps + "-log", NCCL_SOCKET_IFNAME="lo", NCCL_P2P_DISABLE="1",
        NCCL_SHM_DISABLE="1", NCCL_IB_DISABLE="1", NCCL_MAX_NCHANNELS="2", NCCL_DEBUG="WARN", TORCH_FR_BUFFER_SIZE=buffer,
        TORCH_NCCL_ENABLE_TIMING="1", TORCH_NCCL_DUMP_ON_TIMEOUT="1", TORCH_FR_DUMP_TEMP_FILE=f"{folder}/fr_",
        TORCH_NCCL_DEBUG_INFO_TEMP_FILE=f"{folder}/fr_", TORCH_NCCL_DEBUG_INFO_PIPE_FILE=f"{folder}/pipe_", TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC="30",
        TORCH_NCCL_ASYNC_ERROR_HANDLING="1", OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
        CUDA_DEVICE_MAX_CONNECTIONS="1" if run["family"].startswith("meg") else "8",
        TORCHINDUCTOR_CACHE_DIR=f"{a.work}/inductor", JOB_OUT=folder, FAULT=run.get("fault", ""), DUMP=str(run.get("dump", 0)),
        EARLY=str(run.get("early", 0)), BASE_MS=str(run.get("base", 1.5)), GROUP_TIMEOUT=str(run.get("timeout", 60)),
    )
    if run.get("stacks"):
        env["STACKS"] = "1"
    if run.get("frames") is False:
        env["DUMP_STACKS"] = "0"
    env.update({k: v.replace("{trees}", a.trees) for k, v in run.get("env", {}).items()})
    env["PYTHONPATH"] = ":".join(filter(None, [env.get("EXTRA_PATH"), env.get("PYTHONPATH")]))
    return env


def dumps(folder):
    return {p: os.path.getsize(p) for p in glob.glob(f"{folder}/fr_*") + glob.glob(f"{folder}/dump_*") if not p.endswith(".part")}


def watch(run, folder, job, log):
    """Waits for the end, or brings it about; returns how it ended."""
    began = quiet = time.time()
    seen = None
    asked = stacked = False
    wanted = 8 - (1 if run.get("no_dump") is not None else 0)
    hangs = run.get("apart") or (CAUSES[run["fault"].split(":")[0]][0] == "hang" if run.get("fault") else False)
    while job.poll() is None:
        time.sleep(0.25)
        now = time.time()
        logs = [log] + glob.glob(f"{folder}/rank*.log") + glob.glob(f"{folder}/tr/**/*.log", recursive=True)
        size = sum(os.path.getsize(p) for p in logs if os.path.exists(p))
        if run.get("early") and not os.path.exists(f"{folder}/early/torchrun.log") and len(glob.glob(f"{folder}/early/dump_?")) == 8:
            shutil.copy(log, f"{folder}/early/torchrun.log")
        have = dumps(folder)
        state = (size, sum(have.values()), sum(os.path.getmtime(p) for p in glob.glob(f"{folder}/times.*")))
        if state != seen:
            seen, quiet = state, now
        still = now - quiet
        started = os.path.exists(f"{folder}/started") or len(glob.glob(f"{folder}/times.rank*.json")) > 0
        if hangs and started and still > 3 and run.get("stacks") and not stacked:
            stacked = True
            signal_all(folder, signal.SIGUSR1)
        if hangs and started and still > 4 and run.get("ask") and not asked:
            asked = True
            ring(run, folder)
        if hangs and len(have) >= wanted and all(have.values()) and still > (run.get("after", 1.5)):
            return "ended after the dumps"
        if hangs and asked and still > 6:
            return "ended after asking"
        if not hangs and run.get("dump") and run.get("cut") and sum(os.path.exists(f"{folder}/dump_{r}") for r in range(8)) == 8:
            time.sleep(0.5)
            return "ended after the dumps"
        if now - began > run.get("limit", 40):
            return "out of time"
    return f"exit {job.returncode}"


def clean(folder, files):
    """Keeps what someone with the failed job would have."""
    if files:
        for out in glob.glob(f"{folder}/tr/**/stdout.log", recursive=True):
            where = os.path.dirname(out)
            with open(f"{folder}/rank{os.path.basename(where)}.log", "wb") as f:
                for name in ("stdout.log", "stderr.log"):
                    f.write(open(f"{where}/{name}", "rb").read())
    for path in glob.glob(f"{folder}/pid.*") + glob.glob(f"{folder}/pipe_*") + glob.glob(f"{folder}/*.part") + [f"{folder}/started"]:
        if os.path.exists(path):
            os.remove(path)
    for path in ("tr", "hf", "checkpoint", "nano", "mps", "mps-log", "lightning_logs", "checkpoints"):
        shutil.rmtree(f"{folder}/{path}", ignore_errors=True)


def medians(folder, start):
    every = []
    for path in sorted(glob.glob(f"{folder}/times.rank*.json")):
        try:
            every.append(json.load(open(path)))
        except ValueError:
            pass
    if not every:
        return None, 0
    t = every[0]
    ms = lambda v: round(statistics.median(v) * 1e3, 1) if len(v) > 2 else None
    if start is None:
        return {"medianMs": ms(t[4:]), "iterations": len(t)}, len(t)
    return {"medianMsBefore": ms(t[max(4, start - 12):start]), "medianMsAfter": ms(t[start + 1:]), "iterations": len(t)}, len(t)


def truth(run, folder, name, ended):
    fault = run.get("fault", "")
    kind, faults = "healthy", []
    start = None
    for one in filter(None, fault.split(",")):
        k, who, at, _ = one.split(":")
        kind, cause, more = CAUSES[k]
        start = int(at)
        line = None if run.get("log") == "none" else start + run.get("first", 1)
        faults.append({"cause": cause, "causesAccepted": [cause, *more], "ranks": [int(who)], "fromIteration": line if start else None})
    measured, steps = medians(folder, start if kind == "fail-slow" else None)
    about = {"kind": kind, "faults": faults, "job": {"framework": run["framework"], "family": run["family"], "layout": run["layout"], "note": run.get("note", "")}}
    if kind == "fail-slow" and start == 0:
        about["fromStart"] = True
    about["injected"] = fault
    about["measured"] = measured
    about["ended"] = ended
    json.dump(about, open(f"{folder}/truth.json", "w"), indent=1)
    return measured, steps


def archive(folder, name):
    with tarfile.open(f"{a.work}/{name}.tar.gz", "w:gz", compresslevel=9) as t:
        t.add(folder, arcname=name)


def pack():
    for old in glob.glob(f"{a.packs}/*"):
        os.remove(old)
    every = sorted(glob.glob(f"{a.work}/*.tar.gz"))
    bins = [every[i::7] for i in range(7)]
    for i, part in enumerate(bins):
        if part:
            with tarfile.open(f"{a.packs}/pack{i}.tar", "w") as t:
                for path in part:
                    t.add(path, arcname=os.path.basename(path))


def record(name, run, port):
    folder = f"{a.work}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + "/early")
    mps = f"{a.work}/mps/{name}"
    os.makedirs(mps, exist_ok=True)
    os.makedirs(mps + "-log", exist_ok=True)
    env = environment(run, folder, mps)
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env=env)
    files = run.get("files", False)
    log = f"{folder}/torchrun.log"
    script = [s.replace("{trees}", a.trees).replace("{out}", folder).replace("{here}", HERE) for s in run["script"]]
    outside = ["--outside", run["outside"]] if run.get("outside") else []
    command = [f"{HERE}/rank.py", *outside, *script]
    cwd = run.get("cwd", folder).replace("{trees}", a.trees)
    began = time.time()
    if run.get("apart"):
        job = Apart(command, env, folder, port, cwd)
        ended = watch(run, folder, job, log)
    else:
        options = ["--nproc-per-node", "8", "--master-port", str(port), "-r" if files else "--tee", "3", "--log-dir", f"{folder}/tr"]
        with open(log, "wb") as f:
            if a.fork and not run.get("real") and CAUSES.get(run["fault"].split(":")[0], [""])[0] != "crash":
                job = Forked(options, command, env, log, cwd)
            else:
                job = subprocess.Popen(["torchrun", *options, *command], env=env, stdout=f, stderr=f, cwd=cwd)
            ended = watch(run, folder, job, log)
    if job.poll() is None:
        job.kill()     # the launcher first: it would write about the others
        job.wait()
    signal_all(folder, signal.SIGKILL)
    try:
        subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env=env, timeout=5, capture_output=True)
    except subprocess.TimeoutExpired:
        print("   MPS did not end", flush=True)
    clean(folder, files)
    kept = run.get("keep")      # which dumps stay: those made on purpose, or those PyTorch wrote
    if kept:
        for path in dumps(folder):
            if not os.path.basename(path).startswith(kept):
                os.remove(path)
    if run.get("no_dump") is not None:
        for path in (f"{folder}/fr_{run['no_dump']}", f"{folder}/dump_{run['no_dump']}"):
            if os.path.exists(path):
                os.remove(path)
    measured, steps = truth(run, folder, name, ended)
    times = [f"{folder}/{os.path.basename(p)}" for p in glob.glob(f"{folder}/times.*")]
    ok = steps >= 5
    early = f"{folder}/early"
    if os.path.exists(early + "/torchrun.log") and run.get("early_name"):
        other = f"{a.work}/{run['early_name']}"
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(early, other)
        part = [t[: run["early"]] for t in (json.load(open(p)) for p in sorted(times)[:1])]
        about = dict(json.load(open(f"{folder}/truth.json")), kind="healthy", faults=[], injected="", ended="dumped while running",
                     measured={"medianMs": round(statistics.median(part[0][4:]) * 1e3, 1), "iterations": run["early"]} if part else None)
        about.pop("fromStart", None)
        json.dump(about, open(f"{other}/truth.json", "w"), indent=1)
        archive(other, run["early_name"])
    shutil.rmtree(early, ignore_errors=True)
    archive(folder, name)
    size = os.path.getsize(f"{a.work}/{name}.tar.gz") >> 10
    print(f"== {name}: {time.time() - began:.1f}s {ended}, dumps {len(dumps(folder))}, {size} KB, {json.dumps(measured)}", flush=True)
    if not ok or "out of time" in ended:
        text = "".join(open(p, errors="replace").read() for p in [log] + sorted(glob.glob(f"{folder}/rank*.log"))[:1] if os.path.exists(p))
        errors = [l for l in text.splitlines() if re.search(r"Error|Exception|assert", l)][:3]
        print("   " + "\n   ".join(l[:240] for l in (errors + text.splitlines()[-3:])), flush=True)
    pack()
    return ok


def main():
    os.makedirs(a.work, exist_ok=True)
    remembered = os.path.join(os.path.dirname(a.work), "broken.json")
    broken = set(json.load(open(remembered))) if os.path.exists(remembered) and not a.afresh else set()
    port = a.port
    if a.fork:
        preload()
        print(f"loaded in {time.time() - START:.1f}s", flush=True)
    anything = False
    chosen = [n for want in a.names for n in plan.RUNS if fnmatch.fnmatch(n, want)]
    for name in dict.fromkeys(chosen):
        run = plan.RUNS[name]
        left = a.budget - (time.time() - START)
        if run["family"] in broken or left < run.get("limit", 40) * 0.75:
            print(f"-- {name}: left out ({'family broken' if run['family'] in broken else 'no time'})", flush=True)
            continue
        port += 23
        try:
            good = record(name, run, port)
            if not good and a.fork and not anything:      # perhaps the fork's fault: once more, the slow way
                a.fork = False
                good = record(name, dict(run, real=True), port + 7)
            anything |= good
            if not good:
                broken.add(run["family"])
                json.dump(sorted(broken), open(remembered, "w"))
        except Exception as e:
            print(f"-- {name}: {type(e).__name__}: {e}", flush=True)
    print(f"total {time.time() - START:.0f}s", flush=True)


main()
