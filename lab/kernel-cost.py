"""What tracing matrix products costs a step, as it is shipped: one process whose tracing is switched many times a second.

    kernel-cost.py [SECONDS] [EVERY]

Forward and backward passes of a small transformer block on one GPU, no communication: steps of one process a moment apart
differ by far less than jobs do. Blocks of steps with and without tracing alternate in an order drawn anew for each pair (the
agent's word in the ring's header, RING.md 1084); the interval is a bootstrap over pairs.
"""

import glob
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(os.path.dirname(HERE), "probe", "nccl", "build", "libfaultline.so")
STEPS = 6


def work(seconds, rings):
    import torch

    torch.manual_seed(1)
    layers = torch.nn.Sequential(*[
        torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0, device="cuda", dtype=torch.bfloat16)
        for _ in range(4)])
    x = torch.randn(4, 512, 1024, device="cuda", dtype=torch.bfloat16)

    def step():
        layers(x).square().mean().backward()
        layers.zero_grad(set_to_none=True)

    for _ in range(30):
        step()
    torch.cuda.synchronize()
    (ring,) = glob.glob(os.path.join(rings, "*.native.ring"))
    rng, pairs = random.Random(1), []
    with open(ring, "r+b") as file:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            took = {}
            for word in rng.sample((0, 1), 2):  # 0: as it was started, 1: nothing is traced
                file.seek(1084)
                file.write(struct.pack("<I", word))
                file.flush()
                step()
                torch.cuda.synchronize()
                began = time.perf_counter()
                for _ in range(STEPS):
                    step()
                torch.cuda.synchronize()
                took[word] = (time.perf_counter() - began) / STEPS
            pairs.append((took[1], took[0]))
        file.seek(512)
        records = struct.unpack("<Q", file.read(8))[0]
    differences = [100 * (traced / bare - 1) for bare, traced in pairs]
    # The mean of what is left without the tenth at either end: a pause of the machine is no cost of ours.
    trimmed = lambda values: statistics.fmean(sorted(values)[len(values) // 10:-(len(values) // 10) or None])
    drawn = sorted(trimmed(rng.choices(differences, k=len(differences))) for _ in range(1000))
    print(json.dumps({"pairs": len(pairs), "bareMs": 1e3 * statistics.median(bare for bare, _ in pairs), "records": records,
                      "differencePercent": trimmed(differences), "interval95": [drawn[25], drawn[974]]}))


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    every = sys.argv[2] if len(sys.argv) > 2 else "16"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as rings:
        os.chmod(rings, 0o700)
        env = dict(os.environ, FAULTLINE_DIR=rings, LD_PRELOAD=LIBRARY, FAULTLINE_KERNELS=every)
        subprocess.run([sys.executable, __file__, "--work", str(seconds), rings], env=env, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(float(sys.argv[2]), sys.argv[3])
    else:
        main()
