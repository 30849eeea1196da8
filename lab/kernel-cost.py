"""What tracing a matrix product costs its caller: ns of host time a product, with and without, in processes that alternate.

    kernel-cost.py [RUNS]
"""

import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(os.path.dirname(HERE), "probe", "nccl", "build", "libfaultline.so")
WORK = """
import json, statistics, time, torch
a = torch.randn(256, 256, device="cuda", dtype=torch.bfloat16)
out = torch.empty_like(a)
costs = []
for batch in range(60):
    torch.cuda.synchronize()
    began = time.perf_counter_ns()
    for _ in range(200):
        torch.mm(a, a, out=out)
    costs.append((time.perf_counter_ns() - began) / 200)
torch.cuda.synchronize()
print(json.dumps(statistics.median(costs[10:])))
"""
WAYS = {
    "without": {},
    "library loaded, nothing traced": {"LD_PRELOAD": LIBRARY},
    "one in 10": {"LD_PRELOAD": LIBRARY, "FAULTLINE_KERNELS": "10"},
    "every product": {"LD_PRELOAD": LIBRARY, "FAULTLINE_KERNELS": "1"},
}


def main():
    seen = {way: [] for way in WAYS}
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2):
        for way, variables in WAYS.items():
            env = dict(os.environ, FAULTLINE_DIR="/dev/shm/faultline-kernel-cost", **variables)
            done = subprocess.run([sys.executable, "-c", WORK], env=env, capture_output=True, text=True, timeout=120)
            seen[way].append(json.loads(done.stdout))
    for way, costs in seen.items():
        print(f"{way}: {statistics.median(costs):.0f} ns a product ({', '.join(f'{c:.0f}' for c in costs)})", flush=True)


if __name__ == "__main__":
    main()
