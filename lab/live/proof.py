"""The shipped service and agent beside a real job that knows nothing of them but NCCL_PROFILER_PLUGIN.

proof.py OUT --faultline FAULTLINE [--trees TREES] [--job FAMILY] [--seconds 560] [--healthy SECONDS] [--only NAMES]
proof.py OUT --record-only [--job FAMILY] ...          the job and the plug-in alone: rings for `npm run eval -- live-recorded`

FAMILY is one of ../families/plan.py's, or jax. Which rank has which fault is drawn by the family's name; wires are slowed down
between ranks that are seen to send (wires.py).

Injects one fault after the other into the running job, each after a healthy stretch, and asks the service's API what it has
noticed: seconds from the onset to the first incident and to the named root cause, and whether it is the right one. OUT gets
results.json, service.log, agent.log, incidents.json and the job's logs; --table FILE gets one line of JSON more.
"""
import argparse, json, os, random, shutil, signal, subprocess, sys, tempfile, time, urllib.error, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.dirname(HERE)
sys.path[:0] = [LAB, os.path.join(LAB, "families")]
import mps
import plan
import wires
from outcome import ORDER, accused_for_nothing, answer_of, last_line, outcome_of

JAX = dict(framework="JAX", layout="data parallel, one jitted step", script=["{live}/jaxjob.py"])
FAMILIES = dict(plan.FAMILIES, jax=JAX)

ap = argparse.ArgumentParser()
ap.add_argument("out")
ap.add_argument("--faultline", default="", help="the program")
ap.add_argument("--record-only", action="store_true", help="no service and no agent: OUT/JOB.tar.xz has rings/ and results.json")
ap.add_argument("--trees", default="", help="Megatron-LM, as families/setup.sh lays it out")
ap.add_argument("--job", default="meg", choices=sorted(FAMILIES))
ap.add_argument("--seconds", type=float, default=560, help="for all of it")
ap.add_argument("--healthy", type=float, default=0, help="no faults: train for so long, or until so much of the time is left")
ap.add_argument("--only", default="", help="names of faults, with commas")
ap.add_argument("--hangs", action="store_true", help="also ranks that stop, a kernel that hangs and a wire that is dead")
ap.add_argument("--most", type=float, default=60, help="seconds of a fault that nobody names")
ap.add_argument("--front", type=float, default=15, help="seconds before the first fault")
ap.add_argument("--calm", type=float, default=10, help="seconds before every other one")
ap.add_argument("--lasts", type=float, default=14, help="seconds of a fault that is only recorded")
ap.add_argument("--records", type=int, default=131072, help="records of a rank's ring")
ap.add_argument("--port", type=int, default=7077)
ap.add_argument("--master", type=int, default=29811)
ap.add_argument("--base", type=float, default=None, help="GPU milliseconds of a layer in good health")
ap.add_argument("--patience", type=float, default=150, help="seconds until iterations must be known")
ap.add_argument("--keep-rings", action="store_true", help="OUT/JOB.tar.xz with rings/ and results.json")
ap.add_argument("--table", default="", help="where a line is added for this job")
ap.add_argument("--build", default="", help="folder with libfaultline.so and wire-fault.so, if they are built already")
ap.add_argument("--shared-mps", action="store_true", help="CUDA_MPS_PIPE_DIRECTORY names a daemon that others use, too")
ap.add_argument("--gloo", action="store_true", help="a rehearsal on a CPU: tiny models, no plug-in")
ap.add_argument("--dry", action="store_true", help="no job: to rehearse everything else")
a = ap.parse_args()
if not a.record_only and not a.faultline:
    ap.error("--faultline is missing")
a.out = os.path.abspath(a.out)
RUN = FAMILIES[a.job]
BUILD = os.path.abspath(a.build or f"{a.out}/build")
BEGAN = time.time()
API = f"http://127.0.0.1:{a.port}/api/v1"
HANG_S = 22
# What stays for the end: a fault's own, incidents.
SPARE_S = 10 if a.record_only else 25
draw = random.Random(a.job)
places = random.Random(a.job).sample(range(8), 8)

# name, rank, what is written into its file (or which signal, which wire), most seconds, what is right
FAULTS = [
    (f"slow GPU {places[0]}", places[0], "compute {slow}", 30, ("fail-slow", {places[0]}, {"gpu-slow"})),
    (f"slow loader {places[1]}", places[1], "data {data}", 30, ("fail-slow", {places[1]}, {"dataloader", "cpu-stall"})),
    (f"busy CPU {places[2]}", places[2], "cpu {cpu}", 30, ("fail-slow", {places[2]}, {"cpu-stall"})),
    (f"spikes {places[3]}", places[3], "spike {spike}", 40, ("fail-slow", {places[3]}, {"gpu-slow"})),
    ("slow wire", None, "wire slow", 30, ("fail-slow", None, {"network-slow"})),
]
if a.hangs:
    FAULTS += [
        (f"stopped {places[4]}", places[4], "SIGSTOP", 40, ("hang", {places[4]}, {"process-stopped"})),
        (f"GPU hang {places[5]}", places[5], "gpu {hang}", 36, ("hang", {places[5]}, {"gpu-hang", "gpu-error"})),
        ("dead wire", None, "wire dead", 40, ("hang", None, {"network-hang"})),
        (f"slow GPU {places[6]}", places[6], "compute {slow}", 30, ("fail-slow", {places[6]}, {"gpu-slow"})),
    ]
# Of an iteration's own time, by how much a fault lengthens it on its rank.
SHARES = {"slow": 0.8, "spike": 2.0, "data": 0.2 if a.job == "meg" else 0.6, "cpu": 0.7}
# A wire that carries less than the job sends through it now: by so much less.
WIRE_SHARE = 1.6


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
    words = [w.replace("{live}", HERE).replace("{trees}", a.trees).replace("{here}", os.path.join(LAB, "families")).replace("{steps}", "20000")
             .replace("{out}", a.out) for w in RUN["script"]]
    if a.job in plan.MEGATRON:
        words += plan.MEGATRON[a.job]
        words[words.index("--log-interval") + 1] = "100000000"  # no line tells of iterations
    elif "/jobs" in words[0]:
        words += ["--lines", "none"]
        if a.gloo:
            words += ["--layers", "4", "--dim", "64", "--seq", "16"]
    if a.job == "jax":
        return words
    return [f"{HERE}/rank.py"] + (["--outside", RUN["outside"]] if "outside" in RUN else []) + words


def environment(rank, rings, variables):
    env = dict(os.environ, **variables, RANK=str(rank), WORLD_SIZE="8", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.master),
               NCCL_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", NCCL_IB_DISABLE="1",
               NCCL_MAX_NCHANNELS="2", NCCL_DEBUG="WARN", OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1", HF_HUB_OFFLINE="1",
               CUDA_DEVICE_MAX_CONNECTIONS="1" if a.job in plan.MEGATRON else "8", JOB_OUT=a.out, LIVE_FAULTS=f"{a.out}/faults",
               BASE_MS=str(RUN.get("base", 1.5) if a.base is None else a.base), FAULTLINE_DIR=rings, FAULTLINE_JOB="proof",
               FAULTLINE_RECORDS=str(a.records), TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC="1200",
               TORCH_FR_BUFFER_SIZE="2000", TORCH_NCCL_DEBUG_INFO_PIPE_FILE=f"{a.out}/pipe_", TORCH_FR_DUMP_TEMP_FILE=f"{a.out}/fr_",
               TORCH_NCCL_DEBUG_INFO_TEMP_FILE=f"{a.out}/fr_")
    if not a.gloo:
        env["NCCL_PROFILER_PLUGIN"] = f"{BUILD}/libfaultline.so"
    env.update(RUN.get("env", {}))
    # Nothing happens to a rank's sockets until its trigger is there.
    env.update(LD_PRELOAD=f"{BUILD}/wire-fault.so", WIRE_FAULT_TRIGGER=f"{a.out}/faults/wire.{rank}", WIRE_FAULT_SPARE=str(a.master),
               WIRE_FAULT_PID=f"{a.out}/wire-to.{rank}")
    env.pop("WIRE_FAULT_HOW", None)
    return env


def told_by_job():
    """How many iterations there were, and how long the last took: the job's own word."""
    try:
        with open(f"{a.out}/iterations.json") as file:
            said = json.load(file)
        return said["count"], said["ms"]
    except (OSError, ValueError):
        return 0, float("nan")


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


def write(path, text):
    with open(path + ".part", "w") as file:
        file.write(text)
    os.rename(path + ".part", path)


def placed(fault, pids):
    """The fault with a wire of this job, where it is one; none where nobody sends."""
    name, rank, what, most, truth = fault
    if not what.startswith("wire"):
        return fault
    found = wires.busy_wire(pids, draw)
    if found is None:
        return None
    bytes_a_second, rank, to = found
    say(f"wire {rank}-{to} carries {bytes_a_second / 1e6:.2f} MB/s")
    write(f"{a.out}/wire-to.{rank}", str(pids[to]))
    how = "dead" if what == "wire dead" else f"slow={max(0.05, bytes_a_second / 1e6 / WIRE_SHARE):.3f}"
    return f"{name} {rank}-{to}", rank, f"wire {how}", most, (truth[0], {rank, to}, truth[2])


def on(fault, pids, base_ms):
    name, rank, what, _, _ = fault
    if what == "SIGSTOP":
        os.kill(pids[rank], signal.SIGSTOP)
    elif what.startswith("wire"):
        write(f"{a.out}/faults/wire.{rank}", what.split()[1])
    else:
        sizes = {kind: share * base_ms for kind, share in SHARES.items()}
        write(f"{a.out}/faults/{rank}", what.format(**sizes, hang=HANG_S * 1000))


def off(fault, pids):
    _, rank, what, _, _ = fault
    if what == "SIGSTOP":
        os.kill(pids[rank], signal.SIGCONT)
    path = f"{a.out}/faults/" + (f"wire.{rank}" if what.startswith("wire") else str(rank))
    if os.path.exists(path):
        os.remove(path)


def row_of(fault, onset, base_ms):
    name, _, _, _, (kind, ranks, causes) = fault
    return {"fault": name, "truth": {"kind": kind, "ranks": sorted(ranks), "causes": sorted(causes)}, "onsetMs": round(onset * 1000),
            "iterationMs": round(base_ms, 1)}


def inject(fault, pids, results, mine):
    """Switches a fault on, waits for what is said of it, and switches it off; `mine` gets the incidents that are about it."""
    _, _, what, most, truth = fault
    most = min(most, a.most)
    durations, _ = iterations((time.time() - 12) * 1000)
    base_ms = median(durations or iterations()[0])
    before = {i["id"]: i["revision"] for i in incidents()}
    onset = time.time()
    on(fault, pids, base_ms)
    row = row_of(fault, onset, base_ms)
    row.update(detectedS=None, causeS=None, rightS=None, outcome="unnoticed", answer=None, summary=None, kind=None)
    seen, named = None, set()
    while time.time() - onset < most and left() > SPARE_S:
        time.sleep(0.25)
        now = time.time() - onset
        said = []
        for one in incidents():
            if one["id"] in before and (one["revision"] == before[one["id"]] or one["state"] == "resolved"):
                continue
            mine.add(one["id"])
            if row["detectedS"] is None:
                row.update(detectedS=round(now, 1), outcome="unnamed")
            if answer_of(one) and one["state"] != "resolved":
                named.add(one["id"])
                said.append(one)
        if said:
            # Whoever is accused beside the culprit counts; a verdict that was taken back does not.
            one = max(said, key=lambda each: ORDER.index(outcome_of(each, truth)))
            row["causeS"] = row["causeS"] or round(now, 1)
            row.update(answer=answer_of(one), summary=one["summary"], kind=one["kind"], outcome=outcome_of(one, truth), incident=one["id"],
                       confidence=one["verdict"].get("confidence"))
            if row["outcome"] != "wrong":
                row["rightS"] = row["rightS"] or round(now, 1)
            seen = seen or now
        # A later look may correct the first.
        if seen is not None and now - seen > (2 if row["outcome"] == "right" else 9):
            break
    slow, _ = iterations(onset * 1000)
    row["slowMs"] = round(median(slow), 1) if slow else None
    off(fault, pids)
    row.update(lastedS=round(time.time() - onset, 1), endMs=round(time.time() * 1000), incidents=len(named), right=row["outcome"] == "right")
    results.append(row)
    say(json.dumps(row))
    save({"job": a.job, "faults": results})
    recovered = time.time()
    # A GPU that hangs goes on when its kernel ends.
    while what.startswith("gpu") and time.time() - onset < HANG_S + 2 and left() > SPARE_S:
        time.sleep(1)
    while time.time() - recovered < 15 and left() > SPARE_S:
        time.sleep(0.5)
        if not any(i["state"] != "resolved" for i in incidents()):
            break
    row["resolved"] = not any(i["state"] != "resolved" for i in incidents())
    # What is said when a fault has just ended is still said of it.
    mine.update(i["id"] for i in incidents() if i["id"] not in before)


def only_record(fault, pids, results):
    _, base_ms = told_by_job()
    onset = time.time()
    on(fault, pids, base_ms)
    while time.time() - onset < a.lasts and left() > SPARE_S:
        time.sleep(0.1)
    _, slow_ms = told_by_job()
    off(fault, pids)
    row = dict(row_of(fault, onset, base_ms), slowMs=slow_ms, lastedS=round(time.time() - onset, 1), endMs=round(time.time() * 1000))
    results.append(row)
    say(json.dumps(row))
    save({"job": a.job, "faults": results})


def save(summary):
    write(f"{a.out}/results.json", json.dumps(summary, indent=1))


def train(rings, variables):
    words = [sys.executable, *script()]
    return [start(words, f"rank{rank}.log", environment(rank, rings, variables), a.out) for rank in range(8)]


def end(ranks):
    """Ends the ranks, if they can by themselves. Whether one had to be killed."""
    write(f"{a.out}/faults/stop", "")
    until = time.time() + 15
    while time.time() < until and any(one.poll() is None for one in ranks):
        time.sleep(0.1)
    killed = any(one.poll() != 0 for one in ranks)
    for one in ranks:
        if one.poll() is None:
            one.kill()
    for one in ranks:
        try:
            one.wait(10)
        except subprocess.TimeoutExpired:
            pass
    return killed


def build():
    for path, command in ((f"{BUILD}/libfaultline.so", ["make", "-s", "-C", os.path.join(os.path.dirname(LAB), "probe", "nccl"), f"OUT={BUILD}"]),
                          (f"{BUILD}/wire-fault.so", ["gcc", "-O2", "-shared", "-fPIC", "-o", f"{BUILD}/wire-fault.so",
                                                      f"{LAB}/wire-fault.c", "-ldl", "-pthread"])):
        if not os.path.exists(path) and not (a.gloo and "libfaultline" in path):
            subprocess.run(command, check=True, timeout=120)


def progress():
    """Iterations that are known, and how long one takes: from the service, or from the job where there is none."""
    if a.record_only:
        return told_by_job()
    durations, _ = iterations()
    return len(durations), median(durations)


def one_fault_after_the_other(ranks, results, mine):
    pids = [r.pid for r in ranks]
    known, ms = progress()
    every = [] if a.healthy or not known else [f for f in FAULTS if not a.only or any(n in f[0] for n in a.only.split(","))]
    longest = a.lasts if a.record_only else 20
    for at, fault in enumerate(every):
        calm = a.calm if at else a.front
        if left() < SPARE_S + calm + longest or any(r.poll() is not None for r in ranks):
            say("no time left, or a rank is gone:", [r.poll() for r in ranks])
            return
        stretch = time.time()
        count, _ = told_by_job()
        known = set() if a.record_only else {i["id"] for i in incidents()}
        time.sleep(calm)
        here = placed(fault, pids)
        if here is None:
            say(fault[0], "left out: nobody sends")
            continue
        healthy = {"healthyBefore": told_by_job()[0] - count, "healthyBeforeS": round(time.time() - stretch, 1)}
        if a.record_only:
            only_record(here, pids, results)
        else:
            false = [i["summary"] for i in incidents() if i["id"] not in known and answer_of(i)]
            inject(here, pids, results, mine)
            healthy["falseBefore"] = false
        results[-1].update(healthy)
    time.sleep(min(6, max(0, left() - SPARE_S)))      # the last fault's end is part of the recording


def watch_job(ranks, results, summary):
    began, mine = time.time(), set()
    known, ms = 0, float("nan")
    while known < 40 and time.time() - began < a.patience and left() > SPARE_S and all(r.poll() is None for r in ranks):
        time.sleep(1)
        known, ms = progress()
        if a.dry and time.time() - began > 5:
            break
    say("iterations known:", known, "median ms", ms, "dead", [r.poll() for r in ranks if r.poll() is not None])
    summary["firstIterationsS"] = round(time.time() - began, 1)
    trained = time.time()
    while a.healthy and time.time() - trained < a.healthy and left() > SPARE_S and all(r.poll() is None for r in ranks):
        time.sleep(1)
    one_fault_after_the_other(ranks, results, mine)
    known, ms = progress()
    summary.update(iterations=known, medianMs=ms)
    return mine


def judge(summary, results, mine):
    """What is said of all of it, for the table."""
    every = incidents()
    summary["incidents"] = [{k: i[k] for k in ("id", "kind", "state", "summary", "onsetMs", "openedMs", "resolvedMs")} for i in every]
    with open(f"{a.out}/incidents.json", "w") as file:
        json.dump(every, file)
    falsely = accused_for_nothing(every, mine)
    summary["accusedForNothing"] = [i["summary"] for i in falsely]
    summary["healthyIterations"] = sum(row.get("healthyBefore", 0) for row in results)
    return falsely


def processor_time(process):
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 2)


def keep(rings):
    """rings/ and what was injected, as `eval -- live-recorded` reads them."""
    folder = f"{a.out}/keep/{a.job}"
    shutil.rmtree(f"{a.out}/keep", ignore_errors=True)
    os.makedirs(folder)
    shutil.move(rings, f"{folder}/rings")
    for name in ("results.json", "incidents.json"):
        if os.path.exists(f"{a.out}/{name}"):
            shutil.copy(f"{a.out}/{name}", folder)
    packed = f"{a.out}/{a.job}.tar.xz"
    subprocess.run(f"tar cf - -C {a.out}/keep {a.job} | xz -4 -T8 > {packed}.part && mv {packed}.part {packed}", shell=True, check=False, timeout=90)
    if os.path.exists(packed):
        say(f"{packed}: {os.path.getsize(packed) >> 10} KB")
    shutil.rmtree(f"{a.out}/keep", ignore_errors=True)


def main():
    shutil.rmtree(a.out, ignore_errors=True)
    os.makedirs(f"{a.out}/faults")
    os.makedirs(BUILD, exist_ok=True)
    # A launcher that is told to end takes everything along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not a.dry:
        build()
    rings = tempfile.mkdtemp(prefix="faultline-live-", dir="/dev/shm")
    programs, results, falsely = [], [], []
    killed = False
    summary = {"job": a.job, "layout": RUN["layout"], "faults": results}
    try:
        if not a.record_only:
            programs.append(start([a.faultline, "serve", "--port", str(a.port), "--data", f"{a.out}/data"], "service.log"))
            programs.append(start([a.faultline, "agent", "--server", f"ws://127.0.0.1:{a.port}", "--dir", rings], "agent.log"))
        with mps.daemon(not (a.dry or a.shared_mps or a.gloo)) as variables:
            ranks = []
            try:
                if not a.dry:
                    ranks = train(rings, variables)
                mine = watch_job(ranks, results, summary)
                if not a.record_only:
                    falsely = judge(summary, results, mine)
                    summary.update(serviceCpuS=processor_time(programs[0]), agentCpuS=processor_time(programs[1]))
                summary["wallS"] = round(time.time() - BEGAN, 1)
            finally:
                killed = end(ranks)
    finally:
        for one in programs:
            one.terminate()
        time.sleep(1 if programs else 0)
        for one in programs:
            if one.poll() is None:
                one.kill()
        save(summary)
        if a.record_only and results or a.keep_rings:
            keep(rings)
        shutil.rmtree(rings, ignore_errors=True)
    if a.table:
        with open(a.table, "a") as file:
            file.write(json.dumps(summary) + "\n")
    if not results and not a.healthy:
        for rank in range(8):
            if os.path.exists(f"{a.out}/rank{rank}.log"):
                with open(f"{a.out}/rank{rank}.log", errors="replace") as file:
                    say(f"rank {rank}:", file.read()[-600:])
    say(f"{a.job}: {len(results)} faults recorded" if a.record_only else f"{a.job}: {last_line(results, len(falsely))}")
    return KILLED if killed and not a.dry else 0 if a.dry or summary.get("iterations") else 3


# The exit code that says that a rank had to be killed: its MPS daemon may have suffered.
KILLED = 4

sys.exit(main())
