"""What new shares of micro-batches bring to a real job with a slow replica, and that it learns the same.

run.py OUT --faultline EXECUTABLE --job meg|ddp [--trees TREES] [--device cuda|cpu] [--agent]

Three runs of the same job, with the same seeds and the same global batch, over four replicas: undisturbed; with one replica
slow for some iterations; the same with the service's shares. Prints a table of iteration times and the largest difference of
the losses; OUT/results.json has all of it. On a GPU the ranks share it through MPS, as in ../train.py.
"""
import argparse, json, os, shlex, shutil, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.dirname(HERE)
ROOT = os.path.dirname(LAB)
sys.path[:0] = [LAB]
import mps

ap = argparse.ArgumentParser()
ap.add_argument("out")
ap.add_argument("--faultline", required=True, help="the program")
ap.add_argument("--job", default="ddp", choices=("meg", "ddp"))
ap.add_argument("--trees", default="", help="Megatron-LM, as families/setup.sh lays it out")
ap.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
ap.add_argument("--python", default=sys.executable, help="what starts a rank")
ap.add_argument("--service", default="plan serve --groups {replicas} --total {total} --port {port}", help="words of the program")
ap.add_argument("--controller", default="http://127.0.0.1:{port}", help="the address that the job gets")
ap.add_argument("--agent", action="store_true", help="with the agent and the NCCL plug-in beside the job")
ap.add_argument("--port", type=int, default=7077)
ap.add_argument("--total", type=int, default=32, help="micro-batches of the global batch")
ap.add_argument("--steps", type=int, default=110)
ap.add_argument("--slow", default="2:30:75", help="RANK:FROM:TO, in iterations")
ap.add_argument("--base-ms", type=float, default=8, help="of a micro-batch in good health, beside the model's own time")
ap.add_argument("--slow-ms", type=float, default=24, help="more, in each of the slow rank's micro-batches")
ap.add_argument("--limit", type=float, default=150, help="seconds for one run")
ap.add_argument("--bf16", action="store_true", help="Megatron-LM in bfloat16: the losses then differ by its rounding")
a = ap.parse_args()
a.out = os.path.abspath(a.out)
REPLICAS = 4
SLOW_RANK, FROM, TO = (int(part) for part in a.slow.split(":"))
BEGAN = time.time()

MEGATRON = (
    "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 "
    "--lr 1e-3 --min-lr 1e-4 --mock-data --tokenizer-type NullTokenizer --vocab-size 1024 --transformer-impl local "
    "--no-persist-layer-norm --no-gradient-accumulation-fusion --no-masked-softmax-fusion --no-rope-fusion --no-bias-gelu-fusion "
    "--no-bias-dropout-fusion --disable-jit-fuser --attention-backend unfused --distributed-timeout-minutes 2 --log-interval 10 "
    "--eval-iters 0 --eval-interval 100000 --split 99,1,0 --use-distributed-optimizer --num-workers 0 --hidden-dropout 0 "
    "--attention-dropout 0 --seed 1234"
).split()
# A tiny one, without what needs a GPU: for rehearsals.
MEGATRON_ON_CPU = (
    "--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16 --vocab-size 64 "
    "--distributed-backend gloo --use-cpu-initialization --normalization RMSNorm"
).split()


def say(*words):
    print(f"{time.time() - BEGAN:6.1f}", *words, flush=True)


def median(values):
    return sorted(values)[len(values) // 2] if values else float("nan")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(command, log, env=None, cwd=None):
    with open(f"{a.out}/{log}", "wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=env, cwd=cwd)


def words():
    if a.job == "ddp":
        return ["ddp", str(a.total), str(a.steps)]
    script = os.path.join(a.trees, "megatron-lm", "pretrain_gpt.py")
    more = [*(MEGATRON_ON_CPU if a.device == "cpu" else []), *(["--bf16"] if a.bf16 else [])]
    return ["meg", script, *MEGATRON, *more, "--global-batch-size", str(a.total), "--train-iters", str(a.steps)]


def environment(name, rank, port, variables, slowed, helped, rings):
    env = dict(os.environ, **variables, RANK=str(rank), WORLD_SIZE=str(REPLICAS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
               NCCL_SOCKET_IFNAME="lo", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", NCCL_IB_DISABLE="1", NCCL_MAX_NCHANNELS="2",
               GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1", HF_HUB_OFFLINE="1", DEVICE=a.device,
               CUDA_DEVICE_MAX_CONNECTIONS="1" if a.job == "meg" else "8", RECORD=f"{a.out}/{name}.jsonl", BASE_MS=str(a.base_ms),
               SLOW=f"{a.slow}:{a.slow_ms}" if slowed else "-1:0:0:0", FAULTLINE_JOB=f"{a.job}-{name}")
    env.pop("FAULTLINE_CONTROLLER", None)
    if helped:
        env["FAULTLINE_CONTROLLER"] = a.controller.format(port=a.port)
    if a.job == "meg":
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.join(a.trees, "megatron-lm"), env.get("PYTHONPATH")]))
    if rings:
        env.update(FAULTLINE_DIR=rings, NCCL_PROFILER_PLUGIN=f"{a.out}/build/libfaultline.so")
    return env


def train(name, variables, slowed, helped, rings):
    """One run; its lines, in order. None where it did not come to its end."""
    began, port = time.time(), free_port()
    command = [*shlex.split(a.python), f"{HERE}/rank.py", *words()]
    ranks = [start(command, f"{name}.rank{rank}.log", environment(name, rank, port, variables, slowed, helped, rings), a.out)
             for rank in range(REPLICAS)]
    ended = None
    while time.time() - began < a.limit and any(one.poll() is None for one in ranks) and all(one.poll() in (None, 0) for one in ranks):
        time.sleep(0.2)
        # Ranks that hang when all is done are not waited for.
        ended = ended or (time.time() if lines_of(name) == a.steps else None)
        if ended and time.time() - ended > 10:
            break
    codes = [one.poll() for one in ranks]
    for one in ranks:
        if one.poll() is None:
            one.kill()
        one.wait()
    lines = []
    if os.path.exists(f"{a.out}/{name}.jsonl"):
        with open(f"{a.out}/{name}.jsonl") as file:
            lines = [json.loads(line) for line in file]
    say(f"{name}: {len(lines)} of {a.steps} iterations, {time.time() - began:.0f} s, ranks ended with {codes}")
    if len(lines) < a.steps:
        with open(f"{a.out}/{name}.rank0.log", errors="replace") as file:
            print(file.read()[-3000:])
        return None
    return lines


def lines_of(name):
    try:
        with open(f"{a.out}/{name}.jsonl", "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0


def milliseconds(lines, since, until):
    return round(1000 * median([line["seconds"] for line in lines[since:until] if line["seconds"]]), 1)


def figures(runs):
    windows = {"before": (min(10, FROM // 2), FROM), "slow": (FROM + 2 * (TO - FROM) // 3, TO), "after": (TO + 2 * (a.steps - TO) // 3, a.steps)}
    times = {name: {window: milliseconds(lines, *span) for window, span in windows.items()} for name, lines in runs.items()}
    changes, last = [], None
    for line in runs["rebalanced"]:
        if line["counts"] is not None and line["counts"] != last:
            last = line["counts"]
            changes.append({"iteration": line["iteration"], "counts": last})
    first_off = next((c["iteration"] for c in changes if len(set(c["counts"])) > 1), None)
    relief = next((c["iteration"] for c in changes if c["iteration"] >= TO and len(set(c["counts"])) == 1), None)
    difference = {name: max(abs(one["loss"] - two["loss"]) for one, two in zip(lines, runs["undisturbed"])) for name, lines in runs.items()}
    # In shares of the loss itself, since its digits are what rounding moves.
    relative = max(abs(one["loss"] - two["loss"]) / abs(two["loss"]) for one, two in zip(runs["rebalanced"], runs["undisturbed"]))
    healthy, slow, helped = times["undisturbed"]["slow"], times["slowed"]["slow"], times["rebalanced"]["slow"]
    return {
        "job": a.job, "device": a.device, "total": a.total, "steps": a.steps, "slow": a.slow, "baseMs": a.base_ms, "slowMs": a.slow_ms,
        "iterationMs": times, "changes": changes, "rebalancedAfterIterations": None if first_off is None else first_off - FROM,
        "evenAgainAfterIterations": None if relief is None else relief - TO, "largestLossDifference": difference,
        "largestRelativeLossDifference": relative, "lossFirst": runs["undisturbed"][0]["loss"], "lossLast": runs["undisturbed"][-1]["loss"],
        "speedup": round(slow / helped, 3), "lossOfTimeRegained": round((slow - helped) / (slow - healthy), 3) if slow > healthy else None,
        "losses": {name: [line["loss"] for line in lines] for name, lines in runs.items()},
        "seconds": {name: [line["seconds"] for line in lines] for name, lines in runs.items()},
    }


def table(result):
    print(f"\n{a.job} on {a.device}: {REPLICAS} replicas, {a.total} micro-batches, replica {SLOW_RANK} slow in iterations {FROM} to {TO - 1}")
    print(f"{'median ms of an iteration':28}{'before':>10}{'slow':>10}{'after':>10}   largest difference of the loss")
    for name, row in result["iterationMs"].items():
        print(f"{name:28}{row['before']:10.1f}{row['slow']:10.1f}{row['after']:10.1f}   {result['largestLossDifference'][name]:.3g}")
    print(f"loss {result['lossFirst']:.6f} → {result['lossLast']:.6f}; rebalanced differs by {result['largestRelativeLossDifference']:.2g} of it at most")
    print("counts:", "; ".join(f"from iteration {c['iteration']} {c['counts']}" for c in result["changes"]))
    print(f"new counts {result['rebalancedAfterIterations']} iterations after the onset, even again {result['evenAgainAfterIterations']} after the end;"
          f" {result['speedup']} times as fast as slowed, {result['lossOfTimeRegained']} of the lost time regained")


def main():
    shutil.rmtree(a.out, ignore_errors=True)
    os.makedirs(f"{a.out}/build")
    rings, programs, runs = None, [], {}
    try:
        service = [a.faultline, *shlex.split(a.service.format(replicas=REPLICAS, total=a.total, port=a.port, out=a.out))]
        programs.append(start(service, "service.log"))
        if a.agent:
            subprocess.run(["make", "-s", "-C", os.path.join(ROOT, "probe", "nccl"), f"OUT={a.out}/build"], check=True)
            rings = tempfile.mkdtemp(prefix="faultline-rebalance-", dir="/dev/shm")
            programs.append(start([a.faultline, "agent", "--server", f"ws://127.0.0.1:{a.port}", "--dir", rings], "agent.log"))
        for name, slowed, helped in (("undisturbed", False, False), ("slowed", True, False), ("rebalanced", True, True)):
            with mps.daemon(a.device == "cuda") as variables:
                runs[name] = train(name, variables, slowed, helped, rings)
            if runs[name] is None:
                return 3
        dead = [one.poll() for one in programs if one.poll() is not None]
        if dead:
            say("the service ended:", dead)
    finally:
        for one in programs:
            one.terminate()
        time.sleep(0.5)
        for one in programs:
            if one.poll() is None:
                one.kill()
        if rings:
            shutil.rmtree(rings, ignore_errors=True)
    result = figures(runs)
    with open(f"{a.out}/results.json", "w") as file:
        json.dump(result, file, indent=1)
    table(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
