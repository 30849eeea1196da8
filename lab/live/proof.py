"""The shipped service and agent beside a real job that knows nothing of them but NCCL_PROFILER_PLUGIN.

proof.py OUT --faultline FAULTLINE [--trees TREES] [--job FAMILY] [--seconds 560] [--healthy SECONDS] [--only NAMES]

FAMILY is one of ../families/plan.py's; wires are cut and slowed down only where it is known who sends to whom.

Injects one fault after the other into the running job, each after a healthy stretch, and asks the service's API what it has
noticed: seconds from the onset to the first incident and to the named root cause, and whether it is the right one. OUT gets
results.json, service.log, agent.log, incidents.json and the job's logs.
"""
import argparse, json, os, shutil, signal, subprocess, sys, tempfile, time, urllib.error, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.dirname(HERE)
sys.path[:0] = [LAB, os.path.join(LAB, "families")]
import mps
import plan

ap = argparse.ArgumentParser()
ap.add_argument("out")
ap.add_argument("--faultline", required=True, help="the program")
ap.add_argument("--trees", default="", help="Megatron-LM, as families/setup.sh lays it out")
ap.add_argument("--job", default="meg", choices=sorted(plan.FAMILIES))
ap.add_argument("--seconds", type=float, default=560, help="for all of it")
ap.add_argument("--healthy", type=float, default=0, help="no faults: train for so long, or until so much of the time is left")
ap.add_argument("--only", default="", help="names of faults, with commas")
ap.add_argument("--most", type=float, default=60, help="seconds of a fault that nobody names")
ap.add_argument("--port", type=int, default=7077)
ap.add_argument("--master", type=int, default=29811)
ap.add_argument("--base", type=float, default=None, help="GPU milliseconds of a layer in good health")
ap.add_argument("--patience", type=float, default=150, help="seconds until iterations must be known")
ap.add_argument("--keep-rings", action="store_true", help="rings.tar in OUT")
ap.add_argument("--dry", action="store_true", help="no job: to rehearse everything else")
a = ap.parse_args()
a.out = os.path.abspath(a.out)
BEGAN = time.time()
API = f"http://127.0.0.1:{a.port}/api/v1"
HEALTHY_S = 8
HANG_S = 22

# name, rank, what is written into its file (or which signal, which wire), most seconds, what is right
FAULTS = [
    ("slow GPU 6", 6, "compute {slow}", 30, ("fail-slow", {6}, {"gpu-slow"})),
    ("slow loader 2", 2, "data {data}", 30, ("fail-slow", {2}, {"dataloader", "cpu-stall"})),
    ("stopped 5", 5, "SIGSTOP", 40, ("hang", {5}, {"process-stopped"})),
    ("slow wire 4-6", 4, "wire", 35, ("fail-slow", {4, 6}, {"network-slow"})),
    ("spikes 3", 3, "spike {spike}", 40, ("fail-slow", {3}, {"gpu-slow"})),
    ("GPU hang 7", 7, "gpu {hang}", 36, ("hang", {7}, {"gpu-hang", "gpu-error"})),
    ("dead wire 2-3", 2, "wire", 40, ("hang", {2, 3}, {"network-hang"})),
    ("slow GPU 1", 1, "compute {slow}", 30, ("fail-slow", {1}, {"gpu-slow"})),
    ("stopped 0", 0, "SIGSTOP", 40, ("hang", {0}, {"process-stopped"})),
    ("slow loader 0", 0, "data {data}", 30, ("fail-slow", {0}, {"dataloader", "cpu-stall"})),
]
# Whose sending suffers while its file is there, how, and to whom. A ring over all ranks sends to the next one; in Megatron-LM's
# tp 2 pp 2 dp 2, rank 4's replica is 6.
WIRES = {"meg": {4: ("slow=20", 6), 2: ("dead", 3)}, "fsdptp": {4: ("slow=2", 5), 2: ("dead", 3)},
         "fsdp2": {4: ("slow=120", 5), 2: ("dead", 3)}}.get(a.job, {})
if 4 in WIRES:
    to = WIRES[4][1]
    FAULTS[3] = (f"slow wire 4-{to}", 4, "wire", 35, ("fail-slow", {4, to}, {"network-slow"}))
FAULTS = [f for f in FAULTS if f[2] != "wire" or f[1] in WIRES]
# Of an iteration's own time, by how much a fault lengthens it on its rank.
SHARES = {"slow": 0.8, "spike": 2.0, "data": 0.2 if a.job == "meg" else 0.6}


def say(*words):
    print(f"{time.time() - BEGAN:6.1f}", *words, flush=True)


def get(path):
    with urllib.request.urlopen(API + path, timeout=5) as answer:
        return json.load(answer)


def left():
    return a.seconds - (time.time() - BEGAN)


def start(command, log, env=None, cwd=None):
    with open(f"{a.out}/{log}", "wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=env, cwd=cwd)


def script():
    run = plan.FAMILIES[a.job]
    words = [w.replace("{trees}", a.trees).replace("{here}", os.path.join(LAB, "families")).replace("{steps}", "20000")
             .replace("{out}", a.out) for w in run["script"]]
    if a.job in plan.MEGATRON:
        words += plan.MEGATRON[a.job]
        words[words.index("--log-interval") + 1] = "100000000"  # no line tells of iterations
    elif "jobs.py" in words[0]:
        words += ["--lines", "none"]
    return (["--outside", run["outside"]] if "outside" in run else []) + words


def environment(rank, rings, variables):
    env = dict(os.environ, **variables, RANK=str(rank), WORLD_SIZE="8", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.master),
               NCCL_SOCKET_IFNAME="lo", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", NCCL_IB_DISABLE="1", NCCL_MAX_NCHANNELS="2",
               NCCL_DEBUG="WARN", OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1", HF_HUB_OFFLINE="1",
               CUDA_DEVICE_MAX_CONNECTIONS="1" if a.job in plan.MEGATRON else "8", JOB_OUT=a.out, LIVE_FAULTS=f"{a.out}/faults",
               BASE_MS=str(plan.FAMILIES[a.job].get("base", 1.5) if a.base is None else a.base), FAULTLINE_DIR=rings, FAULTLINE_JOB="proof",
               NCCL_PROFILER_PLUGIN=f"{a.out}/build/libfaultline.so", TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC="1200",
               TORCH_FR_BUFFER_SIZE="2000", TORCH_NCCL_DEBUG_INFO_PIPE_FILE=f"{a.out}/pipe_", TORCH_FR_DUMP_TEMP_FILE=f"{a.out}/fr_",
               TORCH_NCCL_DEBUG_INFO_TEMP_FILE=f"{a.out}/fr_")
    env.update(plan.FAMILIES[a.job].get("env", {}))
    if rank in WIRES:
        how, to = WIRES[rank]
        env.update(LD_PRELOAD=f"{a.out}/build/wire-fault.so", WIRE_FAULT_HOW=how, WIRE_FAULT_TRIGGER=f"{a.out}/faults/wire.{rank}",
                   WIRE_FAULT_SPARE=str(a.master), WIRE_FAULT_PID=f"{a.out}/pid.{to}")
    return env


def iterations(since_ms=0):
    """Durations and numbers that the service knows; none before it has heard of the job."""
    try:
        rows = get(f"/jobs/proof/iterations?from={int(since_ms)}&most=20000")
        return rows["durationMs"], rows["iteration"]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return [], []
    except OSError:  # the service is not there yet
        return [], []


def median(values):
    return sorted(values)[len(values) // 2] if values else float("nan")


def incidents():
    try:
        return get("/incidents?most=100")["incidents"]
    except urllib.error.HTTPError:
        raise
    except OSError:
        return []


def answer_of(incident):
    verdict = incident.get("verdict") or {}
    suspects = verdict.get("suspects") or []
    return [{"type": s["type"], "ranks": s["ranks"], "cause": s["cause"], "score": round(s["score"], 2)} for s in suspects[:3]]


def is_right(incident, truth):
    kind, ranks, causes = truth
    suspects = answer_of(incident)
    if not suspects or incident["kind"] != kind:
        return False
    # Whoever is accused beside the culprit is accused wrongly.
    return suspects[0]["cause"] in causes and all(set(one["ranks"]) == ranks for one in suspects)


def on(fault, pids, base_ms):
    name, rank, what, _, _ = fault
    if what == "SIGSTOP":
        os.kill(pids[rank], signal.SIGSTOP)
    elif what == "wire":
        open(f"{a.out}/faults/wire.{rank}", "w").close()
    else:
        text = what.format(slow=SHARES["slow"] * base_ms, spike=SHARES["spike"] * base_ms, data=SHARES["data"] * base_ms, hang=HANG_S * 1000)
        with open(f"{a.out}/faults/{rank}.part", "w") as file:
            file.write(text)
        os.rename(f"{a.out}/faults/{rank}.part", f"{a.out}/faults/{rank}")


def off(fault, pids):
    _, rank, what, _, _ = fault
    if what == "SIGSTOP":
        os.kill(pids[rank], signal.SIGCONT)
    path = f"{a.out}/faults/" + (f"wire.{rank}" if what == "wire" else str(rank))
    if os.path.exists(path):
        os.remove(path)


def inject(fault, pids, results):
    name, rank, what, most, truth = fault
    most = min(most, a.most)
    durations, _ = iterations((time.time() - 12) * 1000)
    base_ms = median(durations or iterations()[0])
    before = {i["id"]: i["revision"] for i in incidents()}
    onset = time.time()
    on(fault, pids, base_ms)
    row = {"fault": name, "truth": {"kind": truth[0], "ranks": sorted(truth[1]), "causes": sorted(truth[2])}, "onsetMs": round(onset * 1000), "iterationMs": round(base_ms, 1), "detectedS": None, "causeS": None, "rightS": None, "right": False,
           "answer": None, "summary": None, "kind": None}
    seen = None
    while time.time() - onset < most and left() > 25:
        time.sleep(0.25)
        now = time.time() - onset
        for one in incidents():
            if one["id"] in before and one["revision"] == before[one["id"]]:
                continue
            if one["state"] == "resolved" and one["id"] in before:
                continue
            if row["detectedS"] is None:
                row["detectedS"] = round(now, 1)
            answer = answer_of(one)
            if answer and row["causeS"] is None:
                row["causeS"] = round(now, 1)
            if answer:
                row.update(answer=answer, summary=one["summary"], kind=one["kind"], right=is_right(one, truth), incident=one["id"],
                           confidence=one["verdict"].get("confidence"))
                if row["right"] and row["rightS"] is None:
                    row["rightS"] = round(now, 1)
                seen = seen or now
        # A later look may correct the first.
        if seen is not None and now - seen > (2 if row["right"] else 9):
            break
    slow, _ = iterations(onset * 1000)
    row["slowMs"] = round(median(slow), 1) if slow else None
    off(fault, pids)
    row["lastedS"] = round(time.time() - onset, 1)
    row["endMs"] = round(time.time() * 1000)
    results.append(row)
    say(json.dumps(row))
    with open(f"{a.out}/results.json", "w") as file:
        json.dump({"job": a.job, "faults": results}, file, indent=1)
    recovered = time.time()
    # A GPU that hangs goes on when its kernel ends.
    while what.startswith("gpu") and time.time() - onset < HANG_S + 2 and left() > 25:
        time.sleep(1)
    while time.time() - recovered < 15 and left() > 25:
        time.sleep(0.5)
        if not any(i["state"] != "resolved" for i in incidents()):
            break
    row["resolved"] = not any(i["state"] != "resolved" for i in incidents())


def train(rings, variables):
    ranks = []
    for rank in range(8):
        ranks.append(start([sys.executable, f"{HERE}/rank.py", *script()], f"rank{rank}.log", environment(rank, rings, variables), a.out))
    return ranks


def main():
    shutil.rmtree(a.out, ignore_errors=True)
    for folder in ("build", "faults"):
        os.makedirs(f"{a.out}/{folder}")
    if not a.dry:
        subprocess.run(["make", "-s", "-C", os.path.join(os.path.dirname(LAB), "probe", "nccl"), f"OUT={a.out}/build"], check=True)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", f"{a.out}/build/wire-fault.so", f"{LAB}/wire-fault.c", "-ldl", "-pthread"],
                       check=True)
    rings = tempfile.mkdtemp(prefix="faultline-live-", dir="/dev/shm")
    programs, ranks, results = [], [], []
    summary = {"job": a.job, "faults": results}
    try:
        programs.append(start([a.faultline, "serve", "--port", str(a.port), "--data", f"{a.out}/data"], "service.log"))
        programs.append(start([a.faultline, "agent", "--server", f"ws://127.0.0.1:{a.port}", "--dir", rings], "agent.log"))
        with mps.daemon(not a.dry) as variables:
            try:
                if not a.dry:
                    ranks = train(rings, variables)
                began = time.time()
                durations = []
                while len(durations) < 40 and time.time() - began < a.patience and all(r.poll() is None for r in ranks):
                    time.sleep(1)
                    durations, _ = iterations()
                    if a.dry and time.time() - began > 5:
                        break
                say("iterations known:", len(durations), "median ms", median(durations), "dead", [r.poll() for r in ranks if r.poll() is not None])
                summary["firstIterationsS"] = round(time.time() - began, 1)
                pids = [r.pid for r in ranks]
                trained = time.time()
                while a.healthy and time.time() - trained < a.healthy and left() > 25 and all(r.poll() is None for r in ranks):
                    time.sleep(1)
                wanted = [] if a.healthy or not durations else [f for f in FAULTS if not a.only or any(n in f[0] for n in a.only.split(","))]
                for fault in wanted:
                    if left() < 60 or any(r.poll() is not None for r in ranks):
                        say("no time left, or a rank is gone:", [r.poll() for r in ranks])
                        break
                    stretch = time.time()
                    known = {i["id"] for i in incidents()}
                    time.sleep(HEALTHY_S)
                    false = [i for i in incidents() if i["id"] not in known]
                    inject(fault, pids, results)
                    results[-1].update(healthyBefore=len(iterations(stretch * 1000)[0]), falseBefore=[i["summary"] for i in false])
                durations, numbers = iterations()
                summary.update(iterations=len(numbers), first=numbers[:1], last=numbers[-1:], medianMs=median(durations))
                every = incidents()
                summary["incidents"] = [{k: i[k] for k in ("id", "kind", "state", "summary", "onsetMs", "openedMs", "resolvedMs")} for i in every]
                with open(f"{a.out}/incidents.json", "w") as file:
                    json.dump(every, file)
                ticks = os.sysconf("SC_CLK_TCK")
                for name, one in zip(("service", "agent"), programs):
                    with open(f"/proc/{one.pid}/stat") as file:
                        fields = file.read().rsplit(")", 1)[1].split()
                    summary[name + "CpuS"] = round((int(fields[11]) + int(fields[12])) / ticks, 2)
                summary["wallS"] = round(time.time() - BEGAN, 1)
            finally:
                for one in ranks:
                    if one.poll() is None:
                        one.kill()
                for one in ranks:
                    try:
                        one.wait(10)
                    except subprocess.TimeoutExpired:
                        pass
    finally:
        for one in programs:
            one.terminate()
        time.sleep(1)
        for one in programs:
            if one.poll() is None:
                one.kill()
        if a.keep_rings or not summary.get("iterations"):
            subprocess.run(["tar", "cf", f"{a.out}/rings.tar", "-C", rings, "."], check=False)
        shutil.rmtree(rings, ignore_errors=True)
        with open(f"{a.out}/results.json", "w") as file:
            json.dump(summary, file, indent=1)
    say("right:", sum(r["right"] for r in results), "of", len(results))
    return 0 if a.dry or summary.get("iterations") else 3


sys.exit(main())
