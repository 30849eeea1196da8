"""A job of four replicas that are threads: no PyTorch, nothing is computed. Prints a JSON line an iteration. Arguments:
controller's address, iterations, seconds of an iteration, the index of a slow replica or -1."""

import json
import logging
import sys
import threading
import time

from faultline_microbatches import MicroBatches

URL, ITERATIONS, ITERATION_S, SLOW = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
REPLICAS, TOTAL = 4, 16
logging.basicConfig(level=logging.INFO)

rows = [[]] * REPLICAS
barrier = threading.Barrier(REPLICAS, timeout=20)


def run(replica):
    def exchange(row):
        rows[replica] = row
        barrier.wait()
        most = [max(values) for values in zip(*rows)]
        barrier.wait()
        return most

    mb = MicroBatches(URL, "fake", TOTAL, replica, REPLICAS, exchange, leader=replica == 0, timeout=0.5,
                      token="secret")
    for iteration in range(ITERATIONS):
        count, weight = mb.next()
        mb.report(count * (0.3 if replica == SLOW else 0.1))
        if replica == 0:
            print(json.dumps({"iteration": iteration, "counts": mb.counts, "trouble": mb.trouble}), flush=True)
        time.sleep(ITERATION_S)


threads = [threading.Thread(target=run, args=(replica,)) for replica in range(REPLICAS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
