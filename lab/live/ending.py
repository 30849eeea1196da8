"""How far a job is, and its end: a rank that is killed while its kernels run can take every other program of its MPS daemon along."""
import json, os, statistics, time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FOLDER, OUT = os.environ["LIVE_FAULTS"], os.environ["JOB_OUT"]
TOLD_EVERY = 5
AHEAD = 8          # iterations, more than ranks are apart
LOOK_S = 0.2
looked = 0.0


def _write(path, text):
    with open(path + ".part", "w") as file:
        file.write(text)
    os.rename(path + ".part", path)


def after(step, seconds, settle):
    """Called by every rank when it has made `step` iterations; `settle` waits for what it has on the GPU."""
    global looked
    if rank == 0 and step % TOLD_EVERY == 0:
        _write(f"{OUT}/iterations.json", json.dumps({"count": step, "ms": round(statistics.median(seconds[-12:]) * 1e3, 2)}))
    now = time.monotonic()
    if now - looked < LOOK_S and not os.path.exists(f"{FOLDER}/stop.at"):
        return
    looked = now
    if rank == 0 and os.path.exists(f"{FOLDER}/stop") and not os.path.exists(f"{FOLDER}/stop.at"):
        _write(f"{FOLDER}/stop.at", str(step + AHEAD))
    try:
        with open(f"{FOLDER}/stop.at") as file:
            at = int(file.read())
    except (OSError, ValueError):
        return
    if step >= at:
        settle()
        _write(f"{FOLDER}/ended.{rank}", "")
        until = time.monotonic() + 5      # what is still on its way to the others
        while time.monotonic() < until and not all(os.path.exists(f"{FOLDER}/ended.{r}") for r in range(world)):
            time.sleep(0.05)
        time.sleep(0.5)
        os._exit(0)
