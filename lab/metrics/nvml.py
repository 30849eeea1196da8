"""All that NVML tells of one GPU, through ctypes: no package is needed beside the driver."""

import ctypes as c
import time

# What dcgm-exporter calls DCGM_FI_PROF_*: the names and numbers of NVML's GPU performance monitoring.
PROFILING = {"graphics": 1, "sm": 2, "occupancy": 3, "integer": 4, "tensor": 5, "hmma": 7, "dram": 10, "fp64": 11, "fp32": 12,
             "fp16": 13, "pcie_tx": 20, "pcie_rx": 21, "nvlink_rx": 60, "nvlink_tx": 61}
ALL_LINKS = 0xFFFFFFFF
XID, TIMED_OUT = 8, 10


class Failed(Exception):
    """NVML's own number for why not."""


class Memory(c.Structure):
    _fields_ = [("total", c.c_ulonglong), ("free", c.c_ulonglong), ("used", c.c_ulonglong)]


class Two(c.Structure):
    _fields_ = [("first", c.c_uint), ("second", c.c_uint)]


class Violation(c.Structure):
    _fields_ = [("reference", c.c_ulonglong), ("time", c.c_ulonglong)]


class Process(c.Structure):
    _fields_ = [("pid", c.c_uint), ("memory", c.c_ulonglong), ("instance", c.c_uint), ("compute", c.c_uint)]


class Field(c.Structure):
    _fields_ = [("id", c.c_uint), ("scope", c.c_uint), ("time", c.c_longlong), ("latency", c.c_longlong),
                ("type", c.c_int), ("code", c.c_int), ("value", c.c_ulonglong)]


class Event(c.Structure):
    _fields_ = [("device", c.c_void_p), ("type", c.c_ulonglong), ("data", c.c_ulonglong), ("instance", c.c_uint),
                ("compute", c.c_uint)]


class Activity(c.Structure):
    _fields_ = [("id", c.c_uint), ("code", c.c_int), ("value", c.c_double), ("words", c.c_char_p * 3)]


class Activities(c.Structure):
    _fields_ = [("version", c.c_uint), ("count", c.c_uint), ("before", c.c_void_p), ("after", c.c_void_p),
                ("of", Activity * 512)]


class Gpu:
    def __init__(self, index=0):
        self.lib = c.CDLL("libnvidia-ml.so.1")
        self.device = c.c_void_p()
        self.refused = {}
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByIndex_v2", c.c_uint(index), c.byref(self.device))
        self.events = c.c_void_p()
        self._try("events", self._listen)
        self.samples = []
        self._try("profiling", self._profile_start)

    def _call(self, name, *arguments):
        code = getattr(self.lib, name)(*arguments)
        if code != 0:
            raise Failed(f"{name}: {code}")

    def _try(self, name, ask):
        """Asks for one thing; what is refused is noted once and is missing in the sample."""
        if name in self.refused:
            return None
        try:
            return ask()
        except (Failed, AttributeError) as error:
            self.refused[name] = str(error)
            return None

    def _number(self, name, *arguments, kind=c.c_uint):
        value = kind()
        self._call(name, self.device, *arguments, c.byref(value))
        return value.value

    def _field(self, number, scope=0):
        field = Field(id=number, scope=scope)
        self._call("nvmlDeviceGetFieldValues", self.device, 1, c.byref(field))
        if field.code != 0:
            raise Failed(f"field {number}: {field.code}")
        return field.value & 0xFFFFFFFF if field.type == 1 else field.value

    def _violation(self, policy):
        status = Violation()
        self._call("nvmlDeviceGetViolationStatus", self.device, policy, c.byref(status))
        return status.time

    def _utilization(self):
        rates = Two()
        self._call("nvmlDeviceGetUtilizationRates", self.device, c.byref(rates))
        return [rates.first, rates.second]

    def _memory(self):
        memory = Memory()
        self._call("nvmlDeviceGetMemoryInfo", self.device, c.byref(memory))
        return [memory.used, memory.free]

    def _rows(self):
        values = [c.c_uint() for _ in range(4)]
        self._call("nvmlDeviceGetRemappedRows", self.device, *map(c.byref, values))
        return [value.value for value in values]

    def _processes(self):
        count, found = c.c_uint(64), (Process * 64)()
        self._call("nvmlDeviceGetComputeRunningProcesses_v3", self.device, c.byref(count), found)
        return {str(found[i].pid): found[i].memory for i in range(count.value)}

    def _listen(self):
        self._call("nvmlEventSetCreate", c.byref(self.events))
        self._call("nvmlDeviceRegisterEvents", self.device, c.c_ulonglong(XID), self.events)

    def _xid(self):
        event = Event()
        code = self.lib.nvmlEventSetWait_v2(self.events, c.byref(event), 1)
        if code == TIMED_OUT:
            return 0
        if code != 0:
            raise Failed(f"nvmlEventSetWait: {code}")
        return event.data

    def _profile_start(self):
        support = Two(first=1)
        self._call("nvmlGpmQueryDeviceSupport", self.device, c.byref(support))
        if not support.second:
            raise Failed("profiling is not supported")
        for _ in range(2):
            sample = c.c_void_p()
            self._call("nvmlGpmSampleAlloc", c.byref(sample))
            self.samples.append(sample)
        self._call("nvmlGpmSampleGet", self.device, self.samples[0])

    def _profile(self):
        """Means since the last call."""
        before, after = self.samples
        self._call("nvmlGpmSampleGet", self.device, after)
        asked = Activities(version=1, count=len(PROFILING), before=before, after=after)
        for i, number in enumerate(PROFILING.values()):
            asked.of[i].id = number
        self._call("nvmlGpmMetricsGet", c.byref(asked))
        self.samples.reverse()
        return {name: round(asked.of[i].value, 4) for i, name in enumerate(PROFILING) if asked.of[i].code == 0}

    def sample(self):
        long = c.c_ulonglong
        asks = {
            "sm_clock": lambda: self._number("nvmlDeviceGetClockInfo", 1),
            "mem_clock": lambda: self._number("nvmlDeviceGetClockInfo", 2),
            "power_mw": lambda: self._number("nvmlDeviceGetPowerUsage"),
            "limit_mw": lambda: self._number("nvmlDeviceGetEnforcedPowerLimit"),
            "energy_mj": lambda: self._number("nvmlDeviceGetTotalEnergyConsumption", kind=long),
            "temp": lambda: self._number("nvmlDeviceGetTemperature", 0),
            "mem_temp": lambda: self._field(82),
            "util": self._utilization,
            "memory": self._memory,
            "pcie_tx_kb": lambda: self._number("nvmlDeviceGetPcieThroughput", 0),
            "pcie_rx_kb": lambda: self._number("nvmlDeviceGetPcieThroughput", 1),
            "pcie_replays": lambda: self._number("nvmlDeviceGetPcieReplayCounter"),
            "pcie_gen": lambda: self._number("nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_width": lambda: self._number("nvmlDeviceGetCurrPcieLinkWidth"),
            "throttle": lambda: self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=long),
            "power_violation_ns": lambda: self._violation(0),
            "thermal_violation_ns": lambda: self._violation(1),
            "reliability_violation_ns": lambda: self._violation(5),
            "ecc_sbe": lambda: self._number("nvmlDeviceGetTotalEccErrors", 0, 0, kind=long),
            "ecc_dbe": lambda: self._number("nvmlDeviceGetTotalEccErrors", 1, 0, kind=long),
            "remapped_rows": self._rows,
            "nvlink_state": lambda: self._number("nvmlDeviceGetNvLinkState", 0),
            "nvlink_tx_kib": lambda: self._field(138, ALL_LINKS),
            "nvlink_rx_kib": lambda: self._field(139, ALL_LINKS),
            "pstate": lambda: self._number("nvmlDeviceGetPerformanceState", kind=c.c_int),
            "processes": self._processes,
        }
        row = {"t": round(time.time(), 3)}
        for name, ask in asks.items():
            row[name] = self._try(name, ask)
        if "events" not in self.refused:
            row["xid"] = self._try("xid", self._xid)
        if "profiling" not in self.refused:
            row["profiling"] = self._try("profiles", self._profile)
        return {name: value for name, value in row.items() if value is not None}
