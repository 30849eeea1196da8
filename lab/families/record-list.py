"""Records many families in little time: four recordings of each from one job, several jobs side by side.

record-list.py WORK PACKS [--lanes 2] [--budget SECONDS] [--length 20] FAMILY...     (a name may end in *; families of plan.MORE)

A job starts once and trains on: LENGTH healthy iterations and as many more (FAMILY-none), then three times LENGTH healthy ones and
LENGTH with a fault, with a pause after each: its GPU (-slowR), its loader (-dataR) and its CPU (-cpuR), each of another rank. Every
part is dumped on its own (PARTS in faults.py), as if the job had begun with it. A start takes as long as all the parts of some
families, so this gives two to three times as many recordings as record.py.

Lanes have processors of their own and share one MPS daemon. Killing a rank whose kernels run can take that daemon with it, so ranks
end by themselves; where one had to be killed, the daemon is started anew as soon as no lane uses it. No job lives longer than its
limit, and none is begun that the budget does not allow for. PACKS gets tar files of recordings as they come (seven at most, so
that a log may lie beside them).
"""
import argparse, fnmatch, glob, json, lzma, multiprocessing, os, runpy, shutil, signal, statistics, sys, tarfile, time, traceback

ap = argparse.ArgumentParser()
ap.add_argument("work")
ap.add_argument("packs")
ap.add_argument("--lanes", type=int, default=2)
ap.add_argument("--budget", type=float, default=540)
ap.add_argument("--length", type=int, default=20, help="iterations before a fault, and with it; at least 12, of which its size is a share")
ap.add_argument("--limit", type=float, default=110, help="seconds of a job")
ap.add_argument("--ranks", type=int, default=8)
ap.add_argument("--port", type=int, default=21000)
ap.add_argument("--small", action="store_true", help="tiny models: for rehearsals without a GPU")
ap.add_argument("names", nargs="+")
a = ap.parse_args()
os.environ.update(OMP_NUM_THREADS="1", PYTORCH_NVML_BASED_CUDA_CHECK="1", TORCHINDUCTOR_COMPILE_THREADS="1")

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.dirname(HERE))
import causes
import mps
import plan
from preload import preload

START = time.time()
PAUSE = 4             # iterations between parts: whoever was behind has caught up
WARM = 3              # iterations that no part has
LEAST_S = 40          # nobody begins a job with less time left
BUFFER = 4000         # collectives in a recorder
MOST_PACK = 14 << 20  # bytes


def left():
    return a.budget - (time.time() - START)


def say(*words):
    print(f"{time.time() - START:6.1f}", *words, flush=True)


def parts_of(family):
    """[name, fault, first iteration, first one after it], the fault's first iteration in it."""
    _, gpu, loader, cpu = plan.MORE[family]
    n, at, parts = a.length, WARM, []
    for name, kind, who, size in (("none", "", 0, ""), (f"slow{gpu}", "compute", gpu, "80%"), (f"data{loader}", "data", loader, "60%"),
                                  (f"cpu{cpu}", "cpu", cpu, "70%")):
        fault = f"{kind}:{who}:{at + n}-{at + 2 * n}:{size}" if kind else ""
        parts.append(dict(name=f"{family}-{name}", fault=fault, start=at, end=at + 2 * n, onset=at + n))
        at += 2 * n + PAUSE
    return parts


def environment(run, parts, folder, variables, port):
    """What a rank gets, apart from its number."""
    return dict(
        os.environ, **variables, WORLD_SIZE=str(a.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NCCL_SOCKET_IFNAME="lo",
        GLOO_SOCKET_IFNAME="lo", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", NCCL_IB_DISABLE="1", NCCL_MAX_NCHANNELS="2", NCCL_DEBUG="WARN",
        TORCH_FR_BUFFER_SIZE=str(BUFFER), TORCH_NCCL_TRACE_BUFFER_SIZE=str(BUFFER), TORCH_NCCL_ENABLE_TIMING="1",
        TORCH_NCCL_DUMP_ON_TIMEOUT="0", TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC="600", TORCH_FR_DUMP_TEMP_FILE=f"{folder}/fr_",
        TORCH_NCCL_DEBUG_INFO_TEMP_FILE=f"{folder}/fr_", PYTHONUNBUFFERED="1", CUDA_DEVICE_MAX_CONNECTIONS="8", GROUP_TIMEOUT="60",
        JOB_OUT=folder, BASE_MS=str(run.get("base", 1.5)), FAULT=",".join(p["fault"] for p in parts if p["fault"]),
        PARTS=",".join(f"{p['name']}:{p['start']}:{p['end']}" for p in parts))


def fork_rank(rank, command, env, folder, cores):
    """A rank with PyTorch loaded already; it dies with the lane."""
    child = os.fork()
    if child:
        return child
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        fd = os.open(f"{folder}/rank{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        os.environ.clear()
        os.environ.update(env, RANK=str(rank))
        if cores:
            os.sched_setaffinity(0, cores)
        os.chdir(folder)
        import torch

        torch.set_num_threads(1)
        spare_processors()
        sys.argv = command
        sys.path.insert(0, HERE)
        runpy.run_path(command[0], run_name="__main__")
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        code = 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(0.5)      # what others still read from this rank
    os._exit(code)


def spare_processors():
    """Waiting for the GPU does not keep a processor busy: two ranks share one here, on a cluster each has many."""
    import ctypes

    try:
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuInit(0)
        driver.cuDevicePrimaryCtxSetFlags_v2(0, 4)      # CU_CTX_SCHED_BLOCKING_SYNC
    except (OSError, AttributeError):
        pass


def wait_for(ranks, folder, parts, limit):
    """Until all have ended, one has failed or the time is up. Returns how it ended and whether ranks had to be killed."""
    alive, failed, ended = dict(enumerate(ranks)), None, "exit 0"
    deadline = time.time() + limit
    last = parts[-1]["name"]
    finishing = False
    while alive:
        for rank, pid in list(alive.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del alive[rank]
                if status and failed is None:
                    failed, ended = rank, f"rank {rank} ended with {os.waitstatus_to_exitcode(status)}"
                    deadline = min(deadline, time.time() + 3)
        if not finishing and len(glob.glob(f"{folder}/{last}/dump_?")) == a.ranks:
            finishing, deadline = True, min(deadline, time.time() + 12)
        if alive and time.time() > deadline:
            ended = ended if failed is not None else "did not end" if finishing else "out of time"
            for pid in alive.values():
                os.kill(pid, signal.SIGKILL)
            for pid in alive.values():
                os.waitpid(pid, 0)
            return ended, True
        time.sleep(0.1)
    return ended, failed is not None


def truth(run, part, times, ended):
    n = part["onset"] - part["start"]
    ms = lambda some: round(statistics.median(some) * 1e3, 1) if some else None
    about = {"kind": "healthy", "faults": [],
             "job": {"framework": run["framework"], "family": run["family"], "layout": run["layout"],
                     "note": "one part of a longer job: its recorder and its log begin with iteration " + str(part["start"])}}
    if part["fault"]:
        kind, who, _, _ = part["fault"].split(":")
        about["kind"], cause, more = causes.CAUSES[kind]
        line = None if run.get("log") in (None, "none") else part["onset"] + run.get("first", 1)
        about["faults"] = [{"cause": cause, "causesAccepted": [cause, *more], "ranks": [int(who)], "fromIteration": line}]
        about["measured"] = {"medianMsBefore": ms(times[max(0, n - 12): n]), "medianMsAfter": ms(times[n + 1:]), "iterations": len(times)}
    else:
        about["measured"] = {"medianMs": ms(times), "iterations": len(times)}
    return dict(about, injected=part["fault"], ended=ended)


def pack_part(run, part, folder):
    """One recording, or why there is none."""
    name, ended = part["name"], "dumped while running"
    where = f"{folder}/{name}"
    if len(glob.glob(f"{where}/dump_?")) < a.ranks:
        return f"{name}: {len(glob.glob(f'{where}/dump_?'))} dumps"
    for path in glob.glob(f"{where}/part.rank*.json"):
        rank = path.split("rank")[-1].split(".")[0]
        with open(path) as f:
            begun, over = json.load(f)["log"]
        with open(f"{folder}/rank{rank}.log", "rb") as f:
            f.seek(begun)
            lines = f.read(over - begun)
        if lines.strip():
            with open(f"{where}/rank{rank}.log", "wb") as f:
                f.write(lines)
        os.remove(path)
    with open(f"{where}/times.rank0.json") as f:
        about = truth(run, part, json.load(f), ended)
    with open(f"{where}/truth.json", "w") as f:
        json.dump(about, f, indent=1)
    with lzma.open(f"{a.work}/ready/{name}.part", "wb", preset=5) as packed, tarfile.open(fileobj=packed, mode="w") as t:
        t.add(where, arcname=name)
    os.rename(f"{a.work}/ready/{name}.part", f"{a.work}/ready/{name}.tar.xz")
    size = os.path.getsize(f"{a.work}/ready/{name}.tar.xz") >> 10
    return f"{name}: {size} KB {json.dumps(about['measured'])}"


def record(family, lane, daemon, port, cores):
    run = dict(plan.FAMILIES[family], family=family)
    parts = parts_of(family)
    folder = f"{a.work}/jobs/{family}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    steps = parts[-1]["end"] + 1
    script = [w.replace("{here}", HERE).replace("{steps}", str(steps)) for w in run["script"]] + ["--lines", run["log"] or "none"]
    if a.small:
        script += ["--layers", "8", "--dim", "64", "--seq", "16"]
    began = time.time()
    variables = daemon.enter()
    killed = True
    try:
        env = environment(run, parts, folder, variables, port)
        ranks = [fork_rank(r, [f"{HERE}/rank.py", *script], env, folder, cores) for r in range(a.ranks)]
        ended, killed = wait_for(ranks, folder, parts, min(a.limit, left() - 6))
    finally:
        daemon.leave(killed)
    lasted = time.time() - began
    with multiprocessing.get_context("fork").Pool(4) as pool:      # while the lane's processors are idle
        lines = pool.starmap(pack_part, [(run, p, folder) for p in parts])
    good = sum("measured" in l or "KB" in l for l in lines)
    say(f"== lane {lane} {family}: {lasted:.1f}s {ended}, {good} of {len(parts)}")
    for line in lines:
        print("      ", line, flush=True)
    if good < len(parts):
        for path in sorted(glob.glob(f"{folder}/rank*.log")):
            with open(path, errors="replace") as f:
                errors = [l.strip() for l in f if "Error" in l or "what()" in l][-2:]
            if errors:
                print("      ", os.path.basename(path), " | ".join(e[:300] for e in errors), flush=True)
                break
        keep_log(family, folder)
    return good > 0


def keep_log(family, folder):
    """The ends of a failed job's logs."""
    with open(f"{a.work}/failed.log", "a") as out:
        for path in sorted(glob.glob(f"{folder}/rank*.log")):
            with open(path, errors="replace") as f:
                out.write(f"==== {family} {os.path.basename(path)}\n{f.read()[-1500:]}\n")


def lane_of(lane, todo, daemon):
    """Takes one family after the other from those that are left."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    processors = sorted(os.sched_getaffinity(0))
    share = len(processors) // a.lanes
    cores = processors[lane * share: (lane + 1) * share] if a.lanes > 1 and share >= 4 else None
    if cores:
        os.sched_setaffinity(0, cores)
    port = a.port + 2000 * lane
    while left() > LEAST_S:
        if todo.value >= 2 * a.lanes and not glob.glob(f"{a.work}/ready/*.tar.xz"):
            say(f"lane {lane}: nothing works; no more is tried")
            break
        with todo.get_lock():
            at, todo.value = todo.value, todo.value + 1
        if at >= len(chosen):
            break
        port += 23
        try:
            record(chosen[at], lane, daemon, port, cores)
        except Exception as e:
            say(f"-- {chosen[at]}: {type(e).__name__}: {e}")


def pack():
    """Everything that is ready, in few files of limited size; what was there stays until its successor is written."""
    bins = [[] for _ in range(7)]
    sizes = [0] * 7
    for path in sorted(glob.glob(f"{a.work}/ready/*.tar.xz"), key=os.path.getsize, reverse=True):
        least = sizes.index(min(sizes))
        if sizes[least] + os.path.getsize(path) > MOST_PACK:
            say("no room for", os.path.basename(path))
            continue
        bins[least].append(path)
        sizes[least] += os.path.getsize(path)
    for i, part in enumerate(bins):
        if part:
            with tarfile.open(f"{a.packs}/.part", "w") as t:
                for path in sorted(part):
                    t.add(path, arcname=os.path.basename(path))
            os.rename(f"{a.packs}/.part", f"{a.packs}/pack{i}.tar")
    if os.path.exists(f"{a.work}/failed.log"):
        shutil.copy(f"{a.work}/failed.log", f"{a.packs}/failed.log")


def main():
    global chosen
    a.work, a.packs = os.path.abspath(a.work), os.path.abspath(a.packs)
    shutil.rmtree(a.work, ignore_errors=True)
    for folder in (f"{a.work}/ready", f"{a.work}/jobs", a.packs):
        os.makedirs(folder, exist_ok=True)
    chosen = list(dict.fromkeys(n for want in a.names for n in plan.MORE if fnmatch.fnmatch(n, want)))
    preload()
    say("loaded")
    daemon, todo = mps.Shared(f"{a.work}/mps"), multiprocessing.Value("i", 0)
    lanes = [multiprocessing.get_context("fork").Process(target=lane_of, args=(i, todo, daemon)) for i in range(a.lanes)]
    for one in lanes:
        one.start()
    packed = 0
    while any(one.is_alive() for one in lanes) and left() > 2:
        time.sleep(1)
        ready = len(glob.glob(f"{a.work}/ready/*.tar.xz"))
        if ready >= packed + 12:
            pack()
            packed = ready
    for one in lanes:
        one.terminate()
    for one in lanes:
        one.join(5)
    pack()
    daemon.stop()
    say(f"{len(glob.glob(f'{a.work}/ready/*.tar.xz'))} recordings of {len(chosen)} families, begun {min(todo.value, len(chosen))}")


if __name__ == "__main__":
    main()
