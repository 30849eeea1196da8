"""Puts fleets together of one machine's recording (record.py), in the words of dcgm-exporter and node_exporter.

    fleet.py RECORDING OUT [--machines 6] [--before 300] [--after 330] [--gpu-every 15] [--node-every 30]

Every machine plays a phase of the recording, back and forth from places of its own: counters go on by what they gained
there, gauges are as they were. All are well at first; then one plays a phase of trouble, and the others what the recorded machine
showed while it was well and waited for a job of that pace. Exporters are asked at moments of their own, and call a machine
by different names, as they do.
"""

import argparse
import bisect
import gzip
import json
import os
import random
import re

BEGAN = 1794960000
LEAST_PLAYED = 0.25
WELL = ("healthy", "healthy-again")
FLEETS = ("clock-low", "power-cap", "cpu-overload", "stray-gpu-process", "disk-and-memory", "halted")

# dcgm-exporter's name: kind, what nvml.py calls it, factor.
GPU = {
    "DCGM_FI_DEV_SM_CLOCK": ("gauge", "sm_clock", 1), "DCGM_FI_DEV_GPU_TEMP": ("gauge", "temp", 1),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "power_mw", 1e-3),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("counter", "energy_mj", 1),
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "util.0", 1), "DCGM_FI_DEV_FB_USED": ("gauge", "memory.0", 2**-20),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": ("gauge", "pcie_width", 1),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("gauge", "throttle", 1),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "xid", 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gauge", "profiling.graphics", 0.01),
    "DCGM_FI_PROF_SM_ACTIVE": ("gauge", "profiling.sm", 0.01),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("gauge", "profiling.tensor", 0.01),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("gauge", "profiling.dram", 0.01),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("gauge", "profiling.pcie_tx", 2**20),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("gauge", "profiling.pcie_rx", 2**20),
}
# Of node_exporter's 285 metrics, those that somebody may want to compare machines by.
NODE = re.compile(
    r'node_(?:cpu_seconds_total\{cpu="\d+",mode="idle"|procs_blocked |uname_info|memory_Mem(?:Available|Total)_bytes '
    r'|disk_io_time_seconds_total\{device="vda"|filesystem_(?:avail|size)_bytes\{)')


def fields(row):
    for name, value in row.items():
        if isinstance(value, list):
            yield from ((f"{name}.{i}", one) for i, one in enumerate(value))
        elif isinstance(value, dict) and name != "processes":
            yield from ((f"{name}.{key}", one) for key, one in value.items())
        elif not isinstance(value, dict):
            yield name, value


class Track:
    """One exporter's samples of the recording: times, and values by series."""

    def __init__(self, rows):
        self.times = [time for time, _ in rows]
        self.rows = [row for _, row in rows]

    def at(self, series, time, counts):
        """Gauges are what was read last, counters in between two readings."""
        i = max(0, bisect.bisect_right(self.times, time) - 1)
        value = self.rows[i][series]
        if counts and i + 1 < len(self.rows):
            share = (time - self.times[i]) / (self.times[i + 1] - self.times[i])
            value += max(0, min(1, share)) * (self.rows[i + 1][series] - value)
        return value


class Part:
    """A phase, played at its own speed from one place to another in it, back and forth, without a period."""

    def __init__(self, phase, seconds, random_):
        first, last = phase["from"], phase["to"]
        self.moments, self.places = [0], [random_.uniform(first, last)]
        while self.moments[-1] < seconds:
            here, there = self.places[-1], random_.uniform(first, last)
            if abs(there - here) > LEAST_PLAYED * (last - first):
                self.moments.append(self.moments[-1] + abs(there - here))
                self.places.append(there)

    def place(self, elapsed):
        i = max(0, bisect.bisect_right(self.moments, elapsed) - 1)
        here, gone = self.places[i], elapsed - self.moments[i]
        return here + gone if i + 1 < len(self.places) and self.places[i + 1] > here else here - gone

    def gained(self, track, series, elapsed):
        turns = bisect.bisect_left(self.moments, elapsed)
        values = [track.at(series, place, True) for place in (*self.places[:turns], self.place(elapsed))]
        return sum(abs(after - before) for before, after in zip(values, values[1:]))


def value(track, series, kind, script, time):
    """`script`: (moment, part), in order; `time` counts from the fleet's beginning."""
    if kind != "counter":
        moment, part = [entry for entry in script if entry[0] <= time][-1]
        return track.at(series, part.place(time - moment), False)
    total = track.at(series, script[0][1].places[0], True)
    for i, (moment, part) in enumerate(script):
        if moment < time:
            end = script[i + 1][0] if i + 1 < len(script) else time
            total += part.gained(track, series, min(end, time) - moment)
    return total


def read(folder):
    truth = json.load(open(f"{folder}/truth.json"))
    rows = [json.loads(line) for line in gzip.open(f"{folder}/nvml.jsonl.gz", "rt")]
    gpu = Track([(row["t"], dict(fields(row))) for row in rows])
    scrapes, types = [], {}
    for line in gzip.open(f"{folder}/node.prom.gz", "rt"):
        if line.startswith("# scrape"):
            scrapes.append((float(line.split()[2]), {}))
        elif line.startswith("# TYPE"):
            types[line.split()[2]] = line.split()[3]
        elif NODE.match(line):
            series, number = line.rsplit(" ", 1)
            scrapes[-1][1][series] = float(number)
    return {phase["name"]: phase for phase in truth["phases"]}, gpu, Track(scrapes), types


def text(number):
    """With as many digits as the exporters' own: counters of seconds have two, shares six."""
    if abs(number) >= 1e5:
        return f"{number:.0f}"
    return f"{number:.{6 if abs(number) <= 1 else 2}f}".rstrip("0").rstrip(".")


def scripts(phases, fault, culprit, a, random_):
    for machine in range(a.machines):
        well = phases[WELL[machine % len(WELL)]]
        if fault:
            then = phases[fault if machine == culprit else f"waits-{fault}"]
            yield [(0, Part(well, a.before, random_)), (a.before, Part(then, a.after, random_))]
        else:
            yield [(0, Part(well, a.before + a.after, random_))]


def write(path, recording, plan, seconds, gpu_every, node_every, random_):
    _, gpu, node, types = recording
    lines = {}
    for machine, script in enumerate(plan):
        host, address = f"gpu-b2-n{machine + 11}", f"10.61.4.{machine + 31}"
        uuid = f"GPU-{random_.getrandbits(32):08x}-{random_.getrandbits(16):04x}-{random_.getrandbits(16):04x}"
        labels = (f'gpu="0",UUID="{uuid}",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="NVIDIA H200",'
                  f'Hostname="{host}",instance="{address}:9400",job="dcgm-exporter"')
        phase = random_.random() * gpu_every
        for name, (kind, series, factor) in GPU.items():
            if series in gpu.rows[0]:
                for i in range(int((seconds - phase) / gpu_every) + 1):
                    time = phase + i * gpu_every
                    lines.setdefault((name, kind), []).append(
                        f"{name}{{{labels}}} {text(factor * value(gpu, series, kind, script, time))} {BEGAN + time:.1f}")
        phase = random_.random() * node_every
        for series in node.rows[0]:
            name, _, own = series.partition("{")
            own = own.rstrip("}").replace('nodename="vm"', f'nodename="{host}"')
            labels = f'{own}{"," if own else ""}instance="{address}:9100",job="node"'
            kind = types[name]
            for i in range(int((seconds - phase) / node_every) + 1):
                time = phase + i * node_every
                lines.setdefault((name, kind), []).append(
                    f"{name}{{{labels}}} {text(value(node, series, kind, script, time))} {BEGAN + time:.1f}")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        for (name, kind), samples in lines.items():
            family = name.removesuffix("_total") if kind == "counter" else name
            file.write(f"# TYPE {family} {kind}\n".encode())
            file.write(("\n".join(samples) + "\n").encode())
        file.write(b"# EOF\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recording")
    parser.add_argument("out")
    for name, default in (("machines", 6), ("before", 300), ("after", 330), ("gpu-every", 15), ("node-every", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    a = parser.parse_args()
    os.makedirs(a.out, exist_ok=True)
    recording = read(a.recording)
    phases, seconds, truth = recording[0], a.before + a.after, {}

    def fleet(name, fault, culprit):
        random_ = random.Random(name)
        plan = list(scripts(phases, fault, culprit, a, random_))
        write(f"{a.out}/{name}.prom.gz", recording, plan, seconds, a.gpu_every, a.node_every, random_)
        pace = phases[fault or "healthy"].get("step_s")
        truth[name] = {
            "machine": None if culprit is None else f"gpu-b2-n{culprit + 11}",
            "fromS": BEGAN + a.before,
            # Of a step's time; nothing where the job stood.
            "slowdown": pace and round(pace / phases["healthy"]["step_s"], 2),
        }

    fleet("healthy", None, None)
    fleet("all-wait", "clock-low", None)
    for i, fault in enumerate(FLEETS):
        if fault in phases:
            fleet(fault, fault, (3 * i + 1) % a.machines)
    with open(f"{a.out}/truth.json", "w") as file:
        json.dump(truth, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
