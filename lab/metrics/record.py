"""Records what a machine with one GPU shows in health and in trouble, beside a real job.

    record.py OUT EXPORTER [--scale 1] [--work DIR]

EXPORTER is node_exporter's program (or it, packed with xz). As root: clocks and the power limit are changed, and set back.
A phase of trouble is followed by one in which the machine is well and waits for a job of the same pace (job.py), so that a
fleet can be put together of what was measured: fleet.py. OUT gets
  nvml.jsonl.gz   a line a second: all that NVML tells (nvml.py)      smi.csv     nvidia-smi's own table, every 5 s
  node.prom.gz    node_exporter's answers every 2 s, with times       steps.txt   time, step, seconds: all, loader, GPU, all-reduce
  truth.json      the phases, their times and what was permitted      log.txt, about.txt
"""

import argparse
import gzip
import json
import lzma
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import job  # noqa: E402
import mps  # noqa: E402
import nvml  # noqa: E402

FIELDS = ("timestamp,index,name,clocks.sm,clocks.mem,power.draw,enforced.power.limit,temperature.gpu,temperature.memory,"
          "utilization.gpu,utilization.memory,memory.used,pcie.link.gen.current,pcie.link.width.current,"
          "clocks_throttle_reasons.active,ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total,pstate")
SETTLE_S = 3
BUSY_PER_CORE = 3
STRAY = """
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
while True:
    for _ in range(50): b = a @ a
    torch.cuda.synchronize()
"""
WRITE = """
import os, sys
block = os.urandom(64 << 20)
while True:
    with open(sys.argv[1], "wb", buffering=0) as file:
        for _ in range(16): file.write(block)
        os.fsync(file.fileno())
"""
HOLD = "import mmap, time; m = mmap.mmap(-1, 24 << 30)\nfor i in range(0, 24 << 30, 4096): m[i] = 1\ntime.sleep(9999)"


class Recorder:
    def __init__(self, out, exporter):
        self.out, self.ends = out, threading.Event()
        self.gpu = nvml.Gpu()
        port = "9100"
        self.url = f"http://127.0.0.1:{port}/metrics"
        self.exporter = subprocess.Popen([exporter, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        with open(f"{out}/smi.csv", "w") as table:
            self.smi = subprocess.Popen(["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv", "-l", "5"], stdout=table,
                                        stderr=table)
        self.scrapes = 0
        self.threads = [threading.Thread(target=self._gpu), threading.Thread(target=self._node)]
        for thread in self.threads:
            thread.start()

    def _every(self, seconds, act):
        at = time.time()
        while not self.ends.is_set():
            try:
                act()
            except Exception as error:
                print("sampling:", repr(error), flush=True)
            at = max(at + seconds, time.time())
            self.ends.wait(max(0, at - time.time()))

    def _gpu(self):
        with gzip.open(f"{self.out}/nvml.jsonl.gz", "wt") as file:
            self._every(1, lambda: file.write(json.dumps(self.gpu.sample()) + "\n"))

    def _node(self):
        with gzip.open(f"{self.out}/node.prom.gz", "wt", compresslevel=6) as file:
            def scrape():
                at = time.time()
                text = urllib.request.urlopen(self.url, timeout=5).read().decode()
                file.write(f"# scrape {at:.3f}\n" + "".join(
                    line + "\n" for line in text.splitlines() if self.scrapes == 0 or not line.startswith("#")))
                self.scrapes += 1

            self._every(2, scrape)

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join(10)
        for process in (self.smi, self.exporter):
            process.kill()


def network():
    """A pair of virtual cables to a network of its own, so that the all-reduce shows on an interface; loopback otherwise."""
    commands = ["ip netns add rest", "ip link add eth7 type veth peer name eth8", "ip link set eth8 netns rest",
                "ip addr add 10.77.0.1/24 dev eth7", "ip link set eth7 up", "ip netns exec rest ip addr add 10.77.0.2/24 dev eth8",
                "ip netns exec rest ip link set eth8 up", "ip netns exec rest ip link set lo up"]
    for command in commands:
        try:
            done = subprocess.run(command.split(), capture_output=True, text=True, timeout=10)
        except OSError as error:
            return f"no: {error}"
        if done.returncode != 0:
            return f"no: {command}: {done.stderr.strip()}"
    return "yes"


def start_job(a, variables, netted, work):
    log = open(f"{a.out}/log.txt", "a")
    processes = []
    for rank in (0, 1):
        env = dict(os.environ, **variables, OMP_NUM_THREADS="1", MASTER_ADDR="10.77.0.1" if netted else "127.0.0.1",
                   MASTER_PORT="29577", NCCL_HOSTID=f"node{rank}", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1",
                   NCCL_IB_DISABLE="1", NCCL_MAX_NCHANNELS="2", NCCL_SOCKET_IFNAME=("eth7", "eth8")[rank] if netted else "lo",
                   GLOO_SOCKET_IFNAME=("eth7", "eth8")[rank] if netted else "lo")
        enter = ["nsenter", "--net=/var/run/netns/rest"] if netted and rank == 1 else []
        processes.append(subprocess.Popen(
            enter + [sys.executable, f"{HERE}/job.py", f"{work}/control", str(rank), f"{work}/data", f"{a.out}/steps.txt"],
            env=env, stdout=log, stderr=log))
    return processes


class Phases:
    def __init__(self, a, control):
        self.a, self.control, self.done = a, control, []

    def durations(self, since):
        rows = [line.split() for line in open(f"{self.a.out}/steps.txt")]
        return [float(row[2]) for row in rows if len(row) == 6 and float(row[0]) - float(row[2]) >= since]

    def run(self, name, seconds, **more):
        time.sleep(SETTLE_S * min(1, self.a.scale))
        began = time.time()
        time.sleep(seconds * self.a.scale)
        phase = {"name": name, "from": round(began, 3), "to": round(time.time(), 3), **more}
        if self.control.get(job.STEP) > 0:
            times = self.durations(began)
            if times:
                phase["step_s"] = round(statistics.median(times), 4)
                phase["steps"] = len(times)
        self.done.append(phase)
        print(json.dumps(phase), flush=True)
        return phase

    def waits(self, name, like, seconds):
        """The machine is well; the job goes on at the pace that it had in the phase before."""
        if "step_s" not in like:
            return
        self.control.set(job.PACE, like["step_s"])
        self.run(name, seconds)
        self.control.set(job.PACE, 0)


def allowed(permitted, name, command):
    done = subprocess.run(command.split(), capture_output=True, text=True, timeout=30)
    permitted[name] = "yes" if done.returncode == 0 else (done.stdout + done.stderr).strip()
    print(name, permitted[name], flush=True)
    return done.returncode == 0


def spawn(commands):
    return [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]


def end(processes):
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


def troubles(a, phases, permitted, work):
    limit = subprocess.run("nvidia-smi --query-gpu=power.default_limit --format=csv,noheader,nounits".split(),
                           capture_output=True, text=True).stdout.strip()
    try:
        if allowed(permitted, "clock lock (nvidia-smi -lgc 900,900)", "nvidia-smi -lgc 900,900"):
            slow = phases.run("clock-low", 45, mhz=900)
            subprocess.run(["nvidia-smi", "-rgc"], capture_output=True)
            phases.waits("waits-clock-low", slow, 25)
        if allowed(permitted, "power limit (nvidia-smi -pl 300)", "nvidia-smi -pl 300"):
            slow = phases.run("power-cap", 45, watts=300)
            subprocess.run(["nvidia-smi", "-pl", limit], capture_output=True)
            phases.waits("waits-power-cap", slow, 25)
    finally:
        subprocess.run(["nvidia-smi", "-rgc"], capture_output=True)
        subprocess.run(["nvidia-smi", "-pl", limit], capture_output=True)
    busy = BUSY_PER_CORE * os.cpu_count()
    others = spawn([[sys.executable, "-c", "while True: pass"]] * busy)
    slow = phases.run("cpu-overload", 45, processes=busy)
    end(others)
    phases.waits("waits-cpu-overload", slow, 25)
    others = spawn([[sys.executable, "-c", STRAY]])  # Not under MPS: it takes turns with the job.
    time.sleep(8)
    slow = phases.run("stray-gpu-process", 45)
    end(others)
    phases.waits("waits-stray-gpu-process", slow, 25)
    others = spawn([[sys.executable, "-c", WRITE, f"{work}/junk{i}"] for i in range(4)] + [[sys.executable, "-c", HOLD]])
    slow = phases.run("disk-and-memory", 45, writers=4, held_gib=24)
    end(others)
    phases.waits("waits-disk-and-memory", slow, 20)


def halts(phases, ranks):
    control = phases.control
    for name, slots in (("halted", (job.STOP_0, job.STOP_1)), ("waits-halted", (job.STOP_1,))):
        step = control.get(job.STEP) + 3
        for slot in slots:
            control.set(slot, step)
        phases.run(name, 25)
        for rank in ranks:
            rank.send_signal(signal.SIGCONT)
        time.sleep(2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("exporter")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--work")
    a = parser.parse_args()
    work = tempfile.mkdtemp(prefix="metrics-", dir=a.work)
    os.makedirs(a.out, exist_ok=True)
    exporter = a.exporter
    if exporter.endswith(".xz"):
        exporter = f"{work}/node_exporter"
        with lzma.open(a.exporter) as packed, open(exporter, "wb") as program:
            shutil.copyfileobj(packed, program)
    os.chmod(exporter, 0o755)
    with open(f"{a.out}/about.txt", "w") as about:
        for command in ("uname -a", "nproc", "free -m", "df -h", "ip -br link", "nvidia-smi -q"):
            about.write(f"$ {command}\n")
            about.flush()
            try:
                subprocess.run(command.split(), stdout=about, stderr=about, timeout=20)
            except OSError as error:
                about.write(f"{error}\n")
    permitted = {"network of its own": network()}
    print(permitted, flush=True)
    block = os.urandom(64 << 20)
    with open(f"{work}/data", "wb") as data:
        for _ in range(16):
            data.write(block)
        os.fsync(data.fileno())
    control = job.Control(f"{work}/control")
    phases, recorder, ranks = Phases(a, control), Recorder(a.out, exporter), []
    try:
        phases.run("idle", 12)
        with mps.daemon(True) as variables:
            permitted["MPS"] = "yes" if variables else "no"
            ranks = start_job(a, variables, permitted["network of its own"] == "yes", work)
            deadline = time.time() + 60
            while control.get(job.STEP) < 3 and time.time() < deadline:
                if any(rank.poll() is not None for rank in ranks):
                    raise SystemExit("a rank ended: " + open(f"{a.out}/log.txt").read()[-3000:])
                time.sleep(0.2)
            phases.run("healthy", 70)
            troubles(a, phases, permitted, work)
            halts(phases, ranks)
            phases.run("healthy-again", 45)
            control.set(job.QUIT, 1)
            time.sleep(1)
            end(ranks)
    finally:
        end([rank for rank in ranks if rank.poll() is None])
        recorder.end()
        with open(f"{a.out}/truth.json", "w") as truth:
            json.dump({"phases": phases.done, "permitted": permitted, "refused_by_nvml": recorder.gpu.refused}, truth, indent=1)
        print(json.dumps(recorder.gpu.refused), recorder.scrapes, "scrapes", flush=True)
        subprocess.run(["ip", "netns", "del", "rest"], capture_output=True) if shutil.which("ip") else None
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
