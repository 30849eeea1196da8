"""A real TP x DP x PP training job whose NCCL ranks share one GPU, with faults to order.

    train.py OUT [--tp 2 --dp 2 --pp 2] [--backend nccl|gloo] [--fault KIND:WHO[:HOW][@FROM[-TO]]] …

Each rank poses as a host of its own (NCCL_HOSTID), so that NCCL takes the shared GPU and talks over loopback sockets.
With --backend gloo the same job runs on the CPU. The launcher prints one line of JSON with the times of all steps; OUT
holds logs, one time a line in times.rank<r>, pids, and PyTorch's flight recorder.

Faults: steps FROM to TO, counted from 0; all to the end where TO is missing; WHO is a rank
  stop      SIGSTOP in the middle of a step       stuck     sleeps for ever in a forward pass
  gpuhang   a kernel that never ends (GPU only)   slow      HOW ms (3) more on the GPU in every layer
  cpu       HOW ms (4) of Python in every layer   gc        a full collection in every layer
  data      HOW ms (200) in the data loader       raise     an exception in the data loader
  kill      SIGKILL in the middle of a step       throttle  HOW per cent (4) of the GPU's SMs, from the start (MPS)
  wire:A-B:dead, wire:A-B:slow=MBPS   what rank A sends to rank B does not arrive, or slowly (wire-fault.c)
"""

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import mps
import options

HERE = os.path.dirname(os.path.abspath(__file__))


def environment(a, rank, rings, variables):
    probe = os.path.join(os.path.dirname(HERE), "probe", "python")
    env = dict(os.environ, **variables, RANK=str(rank), WORLD_SIZE=str(a.world), LOCAL_RANK="0",
               MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port), OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1",
               FAULTLINE_DIR=rings, FAULTLINE_JOB=a.name, GLOO_SOCKET_IFNAME="lo",
               NCCL_HOSTID=f"node{rank:03d}", NCCL_SOCKET_IFNAME="lo", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1",
               NCCL_IB_DISABLE="1", NCCL_MAX_NCHANNELS="2", NCCL_DEBUG=os.environ.get("NCCL_DEBUG", "INFO"),
               NCCL_DEBUG_SUBSYS="INIT,ENV,NET", NCCL_DEBUG_FILE=f"{a.out}/nccl.rank{rank}.log")
    size = "0" if a.recorder == "off" else "20000"
    env.update(TORCH_NCCL_TRACE_BUFFER_SIZE=size, TORCH_FR_BUFFER_SIZE=size, TORCH_NCCL_DUMP_ON_TIMEOUT="1",
               TORCH_NCCL_ENABLE_TIMING="1" if a.recorder == "timing" else "0",
               TORCH_NCCL_DEBUG_INFO_TEMP_FILE=f"{a.out}/fr_dump_rank_", TORCH_FR_DUMP_TEMP_FILE=f"{a.out}/fr_dump_rank_",
               TORCH_NCCL_DEBUG_INFO_PIPE_FILE=f"{a.out}/fr_pipe_", TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=str(a.timeout * 2))
    preload = []
    if a.plugin:
        env["NCCL_PROFILER_PLUGIN"] = os.path.abspath(a.plugin)
        if a.mask:
            env["FAULTLINE_NCCL_MASK"] = a.mask
    if a.shim:
        preload.append(os.path.abspath(a.shim))
        if a.shim_records != "auto":
            env["FAULTLINE_SHIM"] = a.shim_records
        if a.kernels:
            env["FAULTLINE_KERNELS"] = str(a.kernels)
    if a.probe or a.validate >= 0:
        env["PYTHONPATH"] = os.pathsep.join(
            ([os.path.join(probe, "site")] if a.probe else []) + [probe] + list(filter(None, [os.environ.get("PYTHONPATH")])))
    if a.probe:
        # Whatever PyTorch this machine has.
        env.update(FAULTLINE_PROBE="1", FAULTLINE_ANY_VERSION="1")
    for fault in a.fault:
        if fault.kind == "throttle" and fault.rank == rank:
            env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = fault.how or "4"
        if fault.kind == "wire" and fault.rank == rank:
            preload.append(f"{a.out}/wire-fault.so")
            env.update(WIRE_FAULT_HOW=fault.how, WIRE_FAULT_TRIGGER=f"{a.out}/wire.{rank}", WIRE_FAULT_SPARE=str(a.port),
                       WIRE_FAULT_PID=f"{a.out}/pid.rank{fault.to}")
    if preload:
        env["LD_PRELOAD"] = ":".join(preload + list(filter(None, [os.environ.get("LD_PRELOAD")])))
    return env


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ring_folder():
    """In shared memory where there is room: containers often have 64 MB of it."""
    roomy = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 512 << 20
    return tempfile.mkdtemp(prefix="faultline-lab-", dir="/dev/shm" if roomy else None)


def launch(a):
    os.makedirs(a.out, exist_ok=True)
    for old in os.listdir(a.out):
        if re.match(r"(times|pid|wire|fr_|rank|nccl\.)", old):
            os.remove(os.path.join(a.out, old))
    if any(f.kind == "wire" for f in a.fault):
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", f"{a.out}/wire-fault.so",
                        os.path.join(HERE, "wire-fault.c"), "-ldl", "-pthread"], check=True, timeout=60)
    a.port = a.port or free_port()
    rings = os.path.abspath(a.rings) if a.rings else ring_folder()
    os.makedirs(rings, mode=0o700, exist_ok=True)
    about = {"name": a.name, "backend": a.backend, "tp": a.tp, "dp": a.dp, "pp": a.pp, "steps": a.steps,
             "micro": a.micro, "layers": a.layers, "hidden": a.hidden, "seq": a.seq, "arguments": sys.argv[1:]}
    with open(f"{a.out}/run.json", "w") as file:
        json.dump(dict(about, rings=rings, started=time.time()), file)
    # A launcher that is told to end takes its ranks along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    procs, began = [], time.time()
    try:
        with mps.daemon(a.backend == "nccl" and not a.no_mps) as variables:
            try:
                for rank in range(a.world):
                    env = environment(a, rank, rings, variables)
                    with open(f"{a.out}/rank{rank}.log", "w") as log:
                        procs.append(subprocess.Popen([sys.executable, os.path.join(HERE, "rank.py"), *sys.argv[1:]],
                                                      env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
                wait(procs, began + a.limit)
            finally:
                for proc in procs:
                    if proc.poll() is None:
                        proc.kill()
                end = time.time() + 20
                for proc in procs:
                    try:
                        proc.wait(max(0.1, end - time.time()))
                    except subprocess.TimeoutExpired:  # the driver holds it: it is killed when that lets go
                        pass
    finally:
        if not a.rings:
            shutil.rmtree(rings, ignore_errors=True)
    codes = [proc.returncode for proc in procs]
    times = [step_times(f"{a.out}/times.rank{rank}") for rank in range(a.world)]
    print(json.dumps(dict(about, wallS=round(time.time() - began, 1), codes=codes,
                          medianMs=[round(statistics.median(t), 3) if t else None for t in times], stepMs=times)), flush=True)
    return 0 if not any(codes) else 1


def wait(procs, deadline):
    """Until all have ended, or the time is up; after a failure the others have 20 s."""
    while any(proc.poll() is None for proc in procs) and time.time() < deadline:
        if any(proc.returncode for proc in procs):
            deadline = min(deadline, time.time() + 20)
        time.sleep(0.1)


def step_times(path):
    try:
        with open(path) as file:
            return [float(line) for line in file if line.endswith("\n")]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(launch(options.arguments(__doc__)))
