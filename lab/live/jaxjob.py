"""A data-parallel JAX job, one process a rank, that knows nothing of Faultline: rank.py's faults, in a program of one jitted step.

The step's GPU time is a loop of matrix products whose length is an argument, so that a fault needs no other program.
"""
import ctypes, os, signal, sys, time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
os.environ.update(NCCL_HOSTID=f"node-{rank:03d}", XLA_PYTHON_CLIENT_PREALLOCATE="false", XLA_PYTHON_CLIENT_MEM_FRACTION="0.08")
ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import ending

WIDTH = int(os.environ.get("JAX_WIDTH", "1024"))
LAYERS = 6
BASE_MS = 60
EVERY = 8
PATH = os.path.join(os.environ["LIVE_FAULTS"], str(rank))

with open(f"{os.environ['JOB_OUT']}/pid.{rank}", "w") as file:
    file.write(str(os.getpid()))
jax.distributed.initialize(coordinator_address=f"127.0.0.1:{os.environ['MASTER_PORT']}", num_processes=world, process_id=rank,
                           local_device_ids=[0])
mesh = Mesh(np.array(jax.devices()), ("dp",))
split, whole = NamedSharding(mesh, P("dp")), NamedSharding(mesh, P())
try:
    shard_map = jax.shard_map
except AttributeError:
    from jax.experimental.shard_map import shard_map


def inside(params, x, loops):
    def loss_of(weights):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return (h**2).mean()

    loss, grads = jax.value_and_grad(loss_of)(params)
    busy = jax.lax.fori_loop(0, loops[0], lambda i, c: jnp.tanh(c @ c) * 0.5, params[0] + grads[0] * 0)
    grads = [jax.lax.pmean(g + 0 * busy[0, 0], "dp") for g in grads]
    return [p - 1e-3 * g for p, g in zip(params, grads)], jax.lax.pmean(loss, "dp")


step = jax.jit(shard_map(inside, mesh=mesh, in_specs=(P(), P("dp"), P("dp")), out_specs=(P(), P())))
draw = np.random.default_rng(3)
params = [jax.device_put(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 32, whole) for _ in range(LAYERS)]
put = lambda part: jax.make_array_from_process_local_data(split, part)
x = draw.standard_normal((64, WIDTH)).astype(np.float32)


def run(loops):
    global params
    params, loss = step(params, put(x), put(np.array([loops], np.int32)))
    return loss


def seconds(loops):
    began = time.time()
    for _ in range(3):
        float(run(loops))
    return (time.time() - began) / 3


def fault():
    try:
        made = os.stat(PATH).st_mtime_ns
        with open(PATH) as file:
            kind, ms = file.read().split()
        return kind, float(ms), made
    except (OSError, ValueError):
        return "", 0.0, None


float(run(10))
short, long = seconds(10), seconds(210)
loop_ms = max(1e-5, (long - short) / 200) * 1e3
# The same for all, or one of them would be slow from the start.
loop_ms = float(multihost_utils.process_allgather(np.array([loop_ms])).mean())
base = max(10, int(BASE_MS / loop_ms))
print(f"jax {jax.__version__}, a loop takes {loop_ms:.4f} ms, {base} of them in good health", flush=True)
done, n, times = None, 0, []
while True:
    began = time.time()
    kind, ms, made = fault()
    loops = base
    if kind == "data":
        time.sleep(ms / 1e3)
    if kind == "cpu":
        until = time.perf_counter() + ms / 1e3
        while time.perf_counter() < until:
            pass
    if kind == "compute" or kind == "spike" and n % EVERY == 0:
        loops += int(ms / loop_ms)
    if kind == "gpu" and made != done:
        done = made
        loops += int(ms / loop_ms)
    loss = run(loops)
    n += 1
    if n % 5 == 0:
        float(loss)
    times.append(time.time() - began)
    # Four of five iterations are only issued: five of them make a time.
    recent = [sum(times[-5:]) / len(times[-5:])]
    ending.after(n, recent, lambda: float(loss))
