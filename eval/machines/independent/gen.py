#!/usr/bin/env python3
"""Random fleets of GPU machines with and without one faulty machine, as monitoring would have recorded them.

gen.py --seed N --faulty 100 --healthy 100 --out DIR      (standard library only; see README.md)
"""
import argparse, datetime, gzip, io, json, math, os, random, sys, tarfile, time
from itertools import accumulate

DT = 0.25                 # simulation grid, seconds
LEAD = 120.0              # simulated before the first recorded second (for averages)
SI = [str(i) for i in range(20001)]
NOISE_N = 1 << 16
_nr = random.Random(987654321)
NOISE = [max(-3.2, min(3.2, _nr.gauss(0, 1))) for _ in range(NOISE_N)]

MODELS = {
    'NVIDIA H100 80GB HBM3': dict(tdp=700, boost=1980, base=1980, mem=2619, idle=72, idleclk=345, fb=81559, gen=5, lowmem=1593),
    'NVIDIA H200': dict(tdp=700, boost=1980, base=1980, mem=3201, idle=78, idleclk=345, fb=143771, gen=5, lowmem=1593),
    'NVIDIA A100-SXM4-80GB': dict(tdp=400, boost=1410, base=1410, mem=1593, idle=62, idleclk=210, fb=81920, gen=4, lowmem=810),
}

# kind: (weight, where it acts)
KINDS = ['thermal', 'power-cap', 'sm-clock-stuck', 'mem-clock-low', 'pcie-degraded', 'nvlink-errors', 'ib-flap', 'ib-degraded',
         'roce-drops', 'cpu-overload', 'gpu-stray-process', 'disk-slow', 'disk-full', 'ecc-crash', 'xid-halt', 'gpu-lost',
         'machine-died', 'silent-slow', 'memory-pressure']
HEALTHY_TRAITS = ['hot-machine', 'old-xid', 'old-ecc', 'uploader', 'exporter-restart', 'late-scrape', 'job-restart', 'job-end',
                  'clock-drift', 'counter-reset', 'warm-up', 'none']


def nz(rng, k):
    o = rng.randrange(NOISE_N - k)
    return NOISE[o:o + k]


# --------------------------------------------------------------------------------------------------- jobs
IDLE, TRAIN, CKPT, EVAL, LOAD, WARM, HANG = range(7)


class Job:
    """A synchronous job on a time grid: what phase it is in, how far its iterations stretch."""

    def __init__(self, rng, T, name, model):
        self.rng, self.T, self.name, self.model = rng, T, name, model
        self.n = int((T + LEAD) / DT) + 8
        self.tau = rng.choice([rng.uniform(0.8, 3), rng.uniform(2, 8), rng.uniform(6, 25)])
        self.pc = rng.uniform(0.6, 0.9)                 # computing share of a healthy iteration
        self.overlap = rng.uniform(0.2, 0.6)
        self.tens = rng.uniform(0.28, 0.62)
        self.dram = rng.uniform(0.25, 0.6)
        self.spinp = rng.uniform(0.30, 0.48)            # power share while NCCL spins
        self.compp = rng.uniform(0.78, 0.99)            # power share while computing
        self.netbw = rng.uniform(4e9, 30e9)             # bytes/s per rail while communicating
        self.nvbw = rng.uniform(40e9, 220e9)
        self.pciebw = rng.uniform(0.4e9, 5e9)
        self.cpu = rng.uniform(0.05, 0.28)
        self.ckpt_style = rng.choice(['all', 'all', 'rank0', 'async'])
        self.start, self.end, self.restart, self.halt, self.exit = None, None, None, None, None
        self.ckpts, self.evals = [], []
        self.F, self.S, self.mode = 1.0, None, None     # slow factor, activation per second, who waits how
        self.erratic = False

    def plan(self):
        rng, T = self.rng, self.T
        if rng.random() < 0.75:
            per, t = rng.uniform(180, 1200), 0
            t = rng.uniform(-per, per)
            d = rng.uniform(5, 45)
            while t < T:
                self.ckpts.append((t, t + d * rng.uniform(0.9, 1.1)))
                t += per
        if rng.random() < 0.25:
            t = rng.uniform(0, T)
            self.evals.append((t, t + rng.uniform(30, 120)))

    def build(self):
        n, rng = self.n, self.rng
        code = [TRAIN] * n

        def fill(a, b, c):
            ia, ib = max(0, int((a + LEAD) / DT)), min(n, int((b + LEAD) / DT))
            if ib > ia:
                code[ia:ib] = [c] * (ib - ia)
        for a, b in self.evals:
            fill(a, b, EVAL)
        for a, b in self.ckpts:
            fill(a, b, CKPT)
        if self.erratic:
            t = -LEAD
            while t < self.T:
                d = rng.uniform(20, 300)
                fill(t, t + d, rng.choice([IDLE, TRAIN, TRAIN, EVAL, LOAD]))
                t += d
        if self.start is not None:
            fill(-LEAD, self.start, IDLE)
            fill(self.start, self.start + self.loadt, LOAD)
            fill(self.start + self.loadt, self.start + self.loadt + self.warmt, WARM)
        if self.restart is not None:
            a, b = self.restart
            fill(a, b, IDLE)
            fill(b, b + self.loadt, LOAD)
            fill(b + self.loadt, b + self.loadt + self.warmt, WARM)
        if self.halt is not None:
            fill(self.halt, 1e9, HANG)
        if self.exit is not None:
            fill(self.exit, 1e9, IDLE)
        if self.end is not None:
            fill(self.end, 1e9, IDLE)
        self.code = code
        S, F = self.S, self.F
        if S is None:
            self.f = [1.0] * n
        else:
            self.f = [1 + (F - 1) * S[min(len(S) - 1, max(0, int(i * DT - LEAD)))] for i in range(n)]
        ph, p, tau = [], rng.random(), self.tau
        for c, f in zip(code, self.f):
            if c == TRAIN:
                p += DT / (tau * f)
            elif c == WARM:
                p += DT / (tau * 2)
            elif c == EVAL:
                p += DT / (tau * 0.5)
            ph.append(p % 1.0)
        self.ph = ph
        self.cache = {}

    def cls(self, role, hang='spin'):
        """Cumulative computing, spinning and traffic of GPUs of one role."""
        key = (role, hang)
        if key in self.cache:
            return self.cache[key]
        comp, spin, traf, work = [], [], [], []
        pc, ov = self.pc, self.overlap
        net = self.mode == 'net'
        for c, f, p in zip(self.code, self.f, self.ph):
            a = b = t = 0.0
            wk = 1.0
            if c == TRAIN:
                w = pc / f
                if role == 'gpu':
                    w = (pc + f - 1) / f
                    wk = pc / (pc + f - 1)
                    a = 1.0 if p < w else 0.0
                    b = 1 - a
                elif role == 'host':
                    st = (f - 1) / f
                    if p < st:
                        b = 0.12
                    elif p < st + w:
                        a = 1.0
                    else:
                        b = 1.0
                else:
                    a = 1.0 if p < w else 0.0
                    b = 1 - a
                comm = (1 - pc) / f
                if net:
                    t = 1.0 * (1 - pc) / (f - pc) if p >= pc / f else 0.25 * ov
                else:
                    t = 1.0 if p > 1 - comm else (ov * wk if a else 0.0)
            elif c == WARM:
                a = 0.55 if p < pc else 0.0
                b = 1 - a if p >= pc else 0.2
                t = 0.5 if p >= pc else 0.1
            elif c == EVAL:
                a = 0.75 if p < 0.8 else 0.0
                b = 0.2
                t = 0.15
            elif c == CKPT:
                b = 0.9 if self.ckpt_style != 'async' else 0.3
                if self.ckpt_style == 'async':
                    a, t = 0.6, 0.5
            elif c == LOAD:
                a, t = 0.02, 0.01
            elif c == HANG:
                if hang == 'spin':
                    b = 1.0
                elif hang == 'stuck':
                    b = 1.0
            comp.append(a)
            spin.append(b)
            traf.append(t)
            work.append(a * wk)
        r = (list(accumulate(comp, initial=0.0)), list(accumulate(spin, initial=0.0)), list(accumulate(traf, initial=0.0)), list(accumulate(work, initial=0.0)))
        self.cache[key] = r
        return r


class NoJob:
    name = None

    def __init__(self, T):
        n = int((T + LEAD) / DT) + 8
        z = [0.0] * (n + 1)
        self.z = (z, z, z, z)
        self.code = [IDLE] * n
        self.tens = self.dram = 0.4
        self.spinp, self.compp, self.netbw, self.nvbw, self.pciebw, self.cpu = 0.35, 0.9, 1e9, 1e9, 1e9, 0.01
        self.ckpt_style, self.ckpts = 'all', []
        self.halt = self.exit = self.end = self.restart = None

    def cls(self, role, hang='spin'):
        return self.z


# --------------------------------------------------------------------------------------------------- targets
class Target:
    """One scraped endpoint: its scrape times (those that succeeded) and their number on the grid."""

    def __init__(self, rng, iv, T, labels, miss, gaps, end=None):
        off = rng.uniform(0.02, 0.98) * iv
        self.labels, self.iv = labels, iv
        ks, ts, allk = [], [], []
        k = 0
        while True:
            t = off + k * iv
            if t > T:
                break
            allk.append((k, t))
            t2 = t + abs(rng.gauss(0, 0.004))
            if rng.random() < 0.004:
                t2 += rng.uniform(0, 0.3) * iv                 # a slow scrape
            bad = rng.random() < miss or any(a <= t < b for a, b in gaps) or (end is not None and t >= end)
            if not bad:
                ks.append(k)
                ts.append(round(t2, 3))
            k += 1
        self.ks, self.ts, self.all = ks, ts, allk
        self.up = None
        self.K = len(ts)
        self.g = [int((t + LEAD) / DT) for t in ts]

    def sub(self, times, ks):
        o = Target.__new__(Target)
        o.labels, o.iv, o.ts, o.ks, o.K, o.all, o.up = self.labels, self.iv, times, ks, len(times), self.all, None
        return o


def counter(rng, rates, ts, init, jit=0.04):
    """A counter from rates per second at scrape times."""
    v, out, last = init, [], ts[0] if ts else 0
    for r, t, e in zip(rates, ts, nz(rng, len(ts))):
        v += r * (t - last) * (1 + jit * e)
        last = t
        out.append('%d' % v)
    return out


def from_cum(rng, cum, g, scale, init, jit=0.03):
    out, v, last = [], init, None
    for i, e in zip(g, nz(rng, len(g))):
        c = cum[i]
        if last is not None:
            v += (c - last) * scale * (1 + jit * e)
        last = c
        out.append('%d' % v)
    return out


# --------------------------------------------------------------------------------------------------- names
def host_names(rng, n, style):
    base = rng.randrange(1, 200)
    if style == 'cloud':
        nets = [(10, rng.randrange(0, 255), rng.randrange(0, 255), i) for i in rng.sample(range(4, 250), n)]
        ips = ['%d.%d.%d.%d' % x for x in nets]
        suf = rng.choice(['', '.ec2.internal', '.us-west-2.compute.internal'])
        return ['ip-' + ip.replace('.', '-') + suf for ip in ips], ips
    sub = '10.%d.%d.' % (rng.randrange(0, 255), rng.randrange(0, 255))
    ips = [sub + str(i) for i in rng.sample(range(4, 250), n)]
    f = rng.choice(['gpu-node-%03d', 'node%03d', 'gpu%02d', 'hgx-%03d', 'dgx-h100-%02d', 'gke-a3-pool-%04x', 'w%d', 'gn%04d', 'rack{r}-gpu-%02d'])
    names = []
    for i in range(n):
        x = f.replace('{r}', str(1 + i // 8)) % (base + i)
        names.append(x)
    return names, ips


def rid(rng, n, al='bcdfghjklmnpqrstvwxz2456789'):
    return ''.join(rng.choice(al) for _ in range(n))


def uuid(rng):
    h = '%032x' % rng.getrandbits(128)
    return '-'.join([h[:8], h[8:12], h[12:16], h[16:20], h[20:]])


# --------------------------------------------------------------------------------------------------- the faults
def activation(rng, T, t0, shape):
    """How active the fault is, per second, 0..1."""
    n = int(T) + 3
    if shape == 'pulse':
        out, on, left = [], True, 0
        for s in range(n):
            if s < t0:
                out.append(0.0)
                continue
            if left <= 0:
                left = rng.uniform(25, 90) if on else rng.uniform(8, 35)
                cur = 1.0 if on else 0.1
                on = not on
            left -= 1
            out.append(cur)
        return out
    ramp = {'step': 0.01, 'ramp': rng.uniform(60, 150), 'quick': 15}[shape]
    return [0.0 if s < t0 else min(1.0, (s - t0 + 1) / ramp) for s in range(n)]


def make_fault(rng, kind, T, job, info):
    """What the fault does. sev: mild / clear / severe."""
    sev = rng.choices(['mild', 'clear', 'severe'], [0.25, 0.45, 0.30])[0]
    lvl = {'mild': rng.uniform(0.1, 0.3), 'clear': rng.uniform(0.3, 0.65), 'severe': rng.uniform(0.65, 1.0)}[sev]
    fx = dict(kind=kind, sev=sev, lvl=lvl, sick=[rng.randrange(8)], role='ok', rest='ok', hang='spin', rest_hang='spin', mode=None, shape='step', can_start_before=True)
    halts = False
    slow = 1.0
    host_slow = 1.0 + 0.08 + lvl * rng.uniform(0.3, 1.6)
    if kind == 'thermal':
        fx['shape'] = rng.choice(['ramp', 'ramp', 'pulse'])
        if rng.random() < 0.4:
            fx['sick'] = sorted(rng.sample(range(8), rng.choice([2, 4, 8])))
        r = 1 - (0.06 + 0.5 * lvl)
        fx.update(role='gpu', clk_r=r, temp_to=rng.uniform(86, 92), thr=rng.choice([0x20, 0x40 | 0x8, 0x20]), viol='THERMAL', pr=r ** 1.5)
        slow = 1 / r
        halts = rng.random() < 0.1
    elif kind == 'power-cap':
        if rng.random() < 0.7:
            fx['sick'] = list(range(8))
        r = 1 - (0.08 + 0.5 * lvl)
        fx.update(role='gpu', clk_r=r, cap=max(0.3, r ** 1.7), thr=rng.choice([0x80 | 0x8, 0x4]), viol='POWER', pr=r ** 1.7)
        slow = 1 / r
    elif kind == 'sm-clock-stuck':
        if rng.random() < 0.4:
            fx['sick'] = list(range(8))
        r = {'mild': 0.87, 'clear': 0.68, 'severe': rng.choice([0.5, 0.35, 0.18])}[sev] * rng.uniform(0.95, 1.03)
        fx.update(role='gpu', clk_r=r, stuck=True, thr=rng.choice([0x2, 0x8, 0]), pr=max(0.3, r ** 1.4))
        slow = 1 / r
    elif kind == 'mem-clock-low':
        fx.update(role='gpu', memlow=True, pr=rng.uniform(0.75, 0.92), tens_q=None)
        slow = 1.1 + 0.6 * lvl
    elif kind == 'pcie-degraded':
        fx.update(role='host', width=rng.choice([8, 8, 4, 4, 2, 1]) if rng.random() < 0.75 else 16, gen_down=rng.random() < 0.5, replay=rng.choice([0, 3, 40, 400]))
        if fx['width'] == 16:
            fx['gen_down'] = True
        slow = 1.06 + 0.8 * lvl
    elif kind == 'nvlink-errors':
        fx.update(nvl=10 ** (0.3 + 3 * lvl), mode='net')
        slow = 1.03 + 0.5 * lvl
        halts = rng.random() < 0.3
        fx['xid_on_halt'] = 74
    elif kind == 'ib-flap':
        fx.update(mode='net', flap=True, dev=rng.randrange(info['nib']), shape='step')
        slow = 1.1 + 0.8 * lvl
        halts = rng.random() < 0.35
    elif kind == 'ib-degraded':
        fx.update(mode='net', ib_rate=rng.choice([0.5, 0.25, 0.25, 0.125]) if rng.random() < 0.7 else None, dev=rng.randrange(info['nib']),
                  symerr=10 ** (1 + 3 * lvl), wait=True)
        slow = 1.08 + 0.9 * lvl
    elif kind == 'roce-drops':
        fx.update(mode='net', drops=10 ** (1 + 3 * lvl), dev=rng.randrange(info['nib']), shape=rng.choice(['step', 'pulse']))
        slow = 1.06 + 0.8 * lvl
    elif kind == 'cpu-overload':
        fx.update(role='host', rest='host', cpu_to=0.55 + 0.45 * lvl if sev != 'mild' else rng.uniform(0.5, 0.65), sick=list(range(8)), shape=rng.choice(['step', 'quick', 'pulse']))
        slow = 1 + 0.6 * (host_slow - 1)
    elif kind == 'gpu-stray-process':
        fx.update(role='gpu', stray=True, fb_add=rng.randrange(1500, 9000), tens_q=None)
        slow = 1.1 + 0.7 * lvl
    elif kind == 'disk-slow':
        fx.update(role='host', rest='host', sick=list(range(8)), disk='slow')
        slow = host_slow
    elif kind == 'disk-full':
        fx.update(role='host', rest='host', sick=list(range(8)), disk='full')
        slow = 1 + 0.5 * (host_slow - 1)
        halts = rng.random() < 0.6
    elif kind == 'ecc-crash':
        fx.update(ecc=True, xid=rng.choice([48, 63, 94, 95, 94]), hang='gone', rest_hang='gone', can_start_before=False)
        halts = True
    elif kind == 'xid-halt':
        fx.update(xid=rng.choice([79, 119, 31, 13, 62, 74, 45, 120]), hang=rng.choice(['stuck', 'zero']), rest_hang='spin', can_start_before=False)
        if rng.random() < 0.4:
            fx.update(hang='gone', rest_hang='gone')
        halts = True
    elif kind == 'gpu-lost':
        fx.update(vanish=True, xid=79, hang='gone', rest_hang=rng.choice(['gone', 'spin']), can_start_before=False)
        halts = True
    elif kind == 'machine-died':
        fx.update(died=True, hang='gone', rest_hang='gone', can_start_before=False)
        halts = True
    elif kind == 'silent-slow':
        fx.update(role='gpu', pr=1 - (0.07 + 0.22 * lvl), tens_q=None)
        if rng.random() < 0.35:
            fx['sick'] = list(range(8))
        slow = 1.08 + 0.5 * lvl
    elif kind == 'memory-pressure':
        fx.update(role='host', rest='host', sick=list(range(8)), memp=True, shape='ramp')
        slow = host_slow
        halts = rng.random() < 0.3
        if halts:
            fx.update(hang='gone', rest_hang='gone', oom=True)
    if fx['role'] == 'gpu':                       # slow: how much longer this GPU computes
        fx['comp_s'] = slow
        F = 1 + job.pc * (slow - 1)
    else:
        F = slow
    fx['F'] = F
    if kind == 'silent-slow':                     # its power while computing, so that its mean power lies 6-20 % below the waiting peers'
        cs, cp = (job.pc + F - 1) / F, job.pc / F
        goal = (1 - 0.06 - 0.15 * lvl) * (cp * job.compp + (1 - cp) * job.spinp)
        fx['pr'] = max(0.35, (goal - (1 - cs) * job.spinp) / (cs * job.compp))
    instant = kind in ('ecc-crash', 'xid-halt', 'gpu-lost', 'machine-died')
    if fx['can_start_before'] and not halts and rng.random() < 0.12:
        t0 = -LEAD - 400
    else:
        t0 = rng.uniform(0.12 * T, T - 185)
        if halts and not instant:
            t0 = min(t0, T - 300)
    fx['t0'] = t0
    if halts:
        if instant:
            fx['halt'] = t0 + (rng.uniform(0, 4) if kind != 'ecc-crash' else rng.uniform(0, 40))
        else:
            fx['halt'] = rng.uniform(t0 + 90, max(t0 + 120, T - 60))
        u = rng.random()
        fx['exit'] = None if u < 0.3 else fx['halt'] + (600 if u < 0.65 else rng.uniform(75, 200))
    else:
        fx['halt'] = fx['exit'] = None
    fx['S'] = activation(rng, T, t0, fx['shape'])
    if instant:
        fx['F'] = 1.0
    return fx


NEED_DCGM = {
    'thermal': ['DCGM_FI_DEV_SM_CLOCK', 'DCGM_FI_DEV_GPU_TEMP'], 'power-cap': ['DCGM_FI_DEV_SM_CLOCK', 'DCGM_FI_DEV_POWER_USAGE'],
    'sm-clock-stuck': ['DCGM_FI_DEV_SM_CLOCK'], 'mem-clock-low': ['DCGM_FI_DEV_MEM_CLOCK'],
    'pcie-degraded': ['DCGM_FI_DEV_PCIE_LINK_WIDTH', 'DCGM_FI_DEV_PCIE_LINK_GEN', 'DCGM_FI_DEV_PCIE_REPLAY_COUNTER'],
    'nvlink-errors': ['DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL', 'DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL'],
    'gpu-stray-process': ['DCGM_FI_DEV_FB_USED', 'DCGM_FI_DEV_POWER_USAGE'],
    'ecc-crash': ['DCGM_FI_DEV_XID_ERRORS', 'DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS', 'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL'],
    'xid-halt': ['DCGM_FI_DEV_XID_ERRORS'], 'gpu-lost': ['DCGM_FI_DEV_XID_ERRORS'],
    'silent-slow': ['DCGM_FI_DEV_POWER_USAGE', 'DCGM_FI_PROF_SM_ACTIVE'],
}
NEED_NODE = {'ib-flap': ['ib'], 'ib-degraded': ['ib'], 'roce-drops': ['ib', 'rdmahw'], 'cpu-overload': ['cpu'], 'disk-slow': ['disk'],
             'disk-full': ['fs'], 'memory-pressure': ['mem']}

DCGM_BASE = ['DCGM_FI_DEV_GPU_UTIL', 'DCGM_FI_DEV_POWER_USAGE', 'DCGM_FI_DEV_GPU_TEMP', 'DCGM_FI_DEV_SM_CLOCK', 'DCGM_FI_DEV_FB_USED']
DCGM_DEF = ['DCGM_FI_DEV_XID_ERRORS', 'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE', 'DCGM_FI_PROF_GR_ENGINE_ACTIVE', 'DCGM_FI_PROF_DRAM_ACTIVE', 'DCGM_FI_DEV_MEM_COPY_UTIL', 'DCGM_FI_DEV_MEM_CLOCK',
            'DCGM_FI_DEV_MEMORY_TEMP', 'DCGM_FI_PROF_PCIE_RX_BYTES', 'DCGM_FI_PROF_PCIE_TX_BYTES', 'DCGM_FI_DEV_PCIE_REPLAY_COUNTER',
            'DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL', 'DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS', 'DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS',
            'DCGM_FI_DEV_ROW_REMAP_FAILURE', 'DCGM_FI_DEV_FB_FREE', 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION']
DCGM_EXTRA = ['DCGM_FI_PROF_SM_ACTIVE', 'DCGM_FI_PROF_NVLINK_TX_BYTES', 'DCGM_FI_PROF_NVLINK_RX_BYTES', 'DCGM_FI_DEV_ECC_SBE_VOL_TOTAL', 'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL',
              'DCGM_FI_DEV_THERMAL_VIOLATION', 'DCGM_FI_DEV_POWER_VIOLATION', 'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS', 'DCGM_FI_DEV_PCIE_LINK_WIDTH', 'DCGM_FI_DEV_PCIE_LINK_GEN',
              'DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL', 'DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL']
SMI_OF = {  # nvidia_gpu_exporter's name and how the value is made
    'DCGM_FI_DEV_GPU_UTIL': 'nvidia_smi_utilization_gpu_ratio', 'DCGM_FI_DEV_POWER_USAGE': 'nvidia_smi_power_draw_watts',
    'DCGM_FI_DEV_GPU_TEMP': 'nvidia_smi_temperature_gpu', 'DCGM_FI_DEV_SM_CLOCK': 'nvidia_smi_clocks_current_sm_clock_hz',
    'DCGM_FI_DEV_FB_USED': 'nvidia_smi_memory_used_bytes', 'DCGM_FI_DEV_MEM_COPY_UTIL': 'nvidia_smi_utilization_memory_ratio',
    'DCGM_FI_DEV_MEM_CLOCK': 'nvidia_smi_clocks_current_memory_clock_hz', 'DCGM_FI_DEV_MEMORY_TEMP': 'nvidia_smi_temperature_memory',
    'DCGM_FI_DEV_ECC_SBE_VOL_TOTAL': 'nvidia_smi_ecc_errors_corrected_volatile_total', 'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL': 'nvidia_smi_ecc_errors_uncorrected_volatile_total',
    'DCGM_FI_DEV_PCIE_LINK_WIDTH': 'nvidia_smi_pcie_link_width_current', 'DCGM_FI_DEV_PCIE_LINK_GEN': 'nvidia_smi_pcie_link_gen_current',
    'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS': 'nvidia_smi_clocks_event_reasons_active',
}
SMI_CSV = [('DCGM_FI_DEV_GPU_UTIL', 'utilization.gpu [%]', ' %'), ('DCGM_FI_DEV_MEM_COPY_UTIL', 'utilization.memory [%]', ' %'), ('DCGM_FI_DEV_FB_USED', 'memory.used [MiB]', ' MiB'),
           ('DCGM_FI_DEV_POWER_USAGE', 'power.draw [W]', ' W'), ('DCGM_FI_DEV_GPU_TEMP', 'temperature.gpu', ''), ('DCGM_FI_DEV_SM_CLOCK', 'clocks.current.sm [MHz]', ' MHz'),
           ('DCGM_FI_DEV_MEM_CLOCK', 'clocks.current.memory [MHz]', ' MHz'), ('DCGM_FI_DEV_PCIE_LINK_GEN', 'pcie.link.gen.current', ''),
           ('DCGM_FI_DEV_PCIE_LINK_WIDTH', 'pcie.link.width.current', ''), ('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL', 'ecc.errors.uncorrected.volatile.total', '')]


class Machine:
    pass


# --------------------------------------------------------------------------------------------------- one fleet
def fleet(rng, case, kind, outdir):
    dep = rng.choices(['k8s', 'plain', 'slurm', 'cloud', 'mixed'], [0.3, 0.2, 0.2, 0.15, 0.15])[0]
    if dep == 'cloud' and kind in ('nvlink-errors', 'silent-slow'):
        dep = 'plain'                                # nvidia_gpu_exporter has no NVLink counters: it could not be seen
    iv = rng.choices([1, 5, 15, 30, 60], [0.06, 0.14, 0.40, 0.30, 0.10])[0]
    node_iv = iv if rng.random() < 0.7 else {1: 15, 5: 15, 15: 30, 30: 15, 60: 30}[iv]
    T = rng.uniform(600, 1800)
    if iv == 60:
        T = rng.uniform(900, 1800)
    nmain = rng.choice([4, 4, 5, 6, 7, 8, 8, 8, 10, 12, 12, 14, 16, 16, 16, 20, 24, 24, 32, 32, 40, 48, 64, 64, 96, 128])
    if iv == 1:
        nmain, T = min(nmain, rng.choice([4, 6, 8, 8, 12])), rng.uniform(600, 780)
    if iv == 5:
        nmain = min(nmain, rng.choice([16, 24, 32]))
        T = min(T, rng.uniform(700, 1200))
    model = rng.choices(list(MODELS), [0.55, 0.15, 0.30])[0]
    hw = MODELS[model]
    traits = []
    # other machines of the site
    extra = []
    if rng.random() < 0.28:
        ntenant = rng.choice([2, 3, 4, 6, 8])
        extra += [('tenant', i) for i in range(min(ntenant, max(2, nmain)))]
        traits.append('tenants:%d' % len(extra))
    if rng.random() < 0.12:
        extra += [('notebook', 0)]
        traits.append('notebook')
    if rng.random() < 0.18:
        k = rng.choice([1, 1, 2, 3])
        extra += [('idle', i) for i in range(k)]
        traits.append('idle:%d' % k)
    if rng.random() < 0.2:
        extra += [(rng.choice(['login', 'preprocess']), 0)]
        traits.append(extra[-1][0])
    n = nmain + len(extra)

    # the job
    main = Job(rng, T, rng.choice(['llama-70b', 'gpt-moe', 'qwen-pretrain', 'vit-h', 'mixtral-ft']), hw)
    main.loadt, main.warmt = rng.uniform(30, 120), rng.uniform(20, 90)
    main.plan()
    htrait = None
    fx = None
    fabric = rng.choices(['ib', 'roce', 'eth'], [0.5, 0.35, 0.15])[0]
    if kind in ('ib-flap', 'ib-degraded'):
        fabric = rng.choice(['ib', 'ib', 'roce'])
    if kind == 'roce-drops':
        fabric = 'roce'
    nib = rng.choice([8, 8, 4, 2]) if nmain * (T / node_iv) < 1500 else rng.choice([4, 2, 1])
    if nmain * (T / node_iv) > 6000:
        nib = 1
    if rng.random() < 0.12 and kind is None or (rng.random() < 0.06):
        main.start = rng.uniform(-60, min(180, T * 0.2))
        traits.append('job-starts')
    hts = []
    if kind is None:
        hts = [h for h in rng.sample(HEALTHY_TRAITS, rng.choice([1, 1, 2, 2, 3])) if h != 'none']
        if 'job-restart' in hts and 'job-end' in hts:
            hts.remove('job-end')
    else:
        hts = [h for h in rng.sample(HEALTHY_TRAITS, rng.choice([0, 0, 1, 1, 2])) if h not in ('none', 'job-restart', 'job-end', 'warm-up')]
    if 'warm-up' in hts and main.start is None:
        main.start = rng.uniform(0, T * 0.3)
    if 'job-restart' in hts:
        a = rng.uniform(0.25 * T, 0.65 * T)
        main.restart = (a, a + rng.uniform(20, 150))
        if main.start is not None and main.start > 0:
            main.start = None
    if 'job-end' in hts:
        main.end = rng.uniform(0.5 * T, 0.93 * T)
        if main.start is not None and main.start > 0:
            main.start = None
    traits += hts
    if kind:
        fx = make_fault(rng, kind, T, main, dict(nib=nib))
        if kind == 'xid-halt' and dep == 'cloud':       # no Xid in nvidia-smi's query: what shows is the GPU that does nothing while the others spin
            if fx['hang'] == 'stuck':
                fx['hang'] = 'zero'
            fx['exit'] = None
        main.F, main.S, main.mode = fx['F'], fx['S'], fx['mode']
        main.halt, main.exit = fx['halt'], fx['exit']
        if main.exit is not None and main.exit > T:
            main.exit = None
        if main.start is not None and main.start + main.loadt + main.warmt > max(0, fx['t0']):
            main.start = None
            if 'job-starts' in traits:
                traits.remove('job-starts')
    main.build()
    tenant = None
    if any(e[0] == 'tenant' for e in extra):
        tenant = Job(rng, T, rng.choice(['sd-xl', 'bert-ft', 'whisper']), hw)
        tenant.loadt, tenant.warmt = 40, 30
        tenant.plan()
        if rng.random() < 0.3:
            tenant.start = rng.uniform(0, T * 0.7)
        tenant.build()
    notebook = None
    if any(e[0] == 'notebook' for e in extra):
        notebook = Job(rng, T, 'notebook', hw)
        notebook.erratic = True
        notebook.build()
    nojob = NoJob(T)

    # machines
    style = 'cloud' if dep == 'cloud' or (dep == 'k8s' and rng.random() < 0.4) else 'site'
    names, ips = host_names(rng, n, style)
    order = list(range(n))
    if rng.random() < 0.35:
        rng.shuffle(order)
    pp = 1
    if nmain >= 8 and rng.random() < 0.4:
        pp = rng.choice([p for p in (2, 4) if nmain % p == 0 and nmain // p >= 4] or [1])
    ms = []
    t_epoch = 1794700000 + rng.randrange(0, 40000000)
    base = t_epoch - t_epoch % 60
    prom_gap = []
    if rng.random() < 0.07:
        a = rng.uniform(60, T - 240)
        prom_gap = [(a, a + rng.uniform(40, 110))]
        traits.append('prometheus-gap')
    victim = order[rng.randrange(nmain)] if kind else None
    cast = {}                                          # trait -> machine
    for h in hts:
        c = [order[i] for i in range(nmain) if order[i] != victim]
        cast[h] = rng.choice(c)
    ncpu = rng.choice([96, 128, 192, 208])
    nodename_style = rng.choice(['same', 'same', 'fqdn']) if dep != 'cloud' else 'same'
    inst_style = rng.choice(['name', 'ip']) if dep in ('plain', 'slurm', 'mixed') else 'ip'
    host_label = rng.choice(['Hostname', 'Hostname', 'hostname'])
    pod_hostname = dep == 'k8s' and rng.random() < 0.2
    if pod_hostname:
        traits.append('pod-hostname')
    node_label = dep == 'k8s' and rng.random() < 0.35
    miss = rng.choice([0, 0.001, 0.004, 0.01])
    C = rng.choice([c for c in (1, 5, 10, 15, 30) if c <= max(iv, 30)]) if iv > 1 else 1
    if iv == 60:
        C = 30
    if dep == 'cloud':
        C = 0
    idle_clock = rng.random() < 0.8
    pos_grad = [rng.uniform(0, 9) if rng.random() < 0.5 else rng.uniform(0, 3) for _ in range(8)]
    slurm_id = str(rng.randrange(100000, 999999))
    stage_mem = [rng.uniform(0.55, 0.93) - 0.05 * s for s in range(pp)]
    stage_pw = [1.0 + rng.uniform(-0.02, 0.02) for _ in range(pp)]
    fb_same = rng.random() < 0.7
    jobseq = rid(rng, 5)
    for pos in range(n):
        i = order[pos]
        m = Machine()
        m.i, m.name, m.ip, m.pos = i, names[i], ips[i], pos
        m.role = 'main' if pos < nmain else extra[pos - nmain][0]
        m.job = {'main': main, 'tenant': tenant, 'notebook': notebook}.get(m.role, nojob)
        m.fx = fx if i == victim else None
        m.gpus = m.role not in ('login', 'preprocess')
        m.stage = pos * pp // nmain if m.role == 'main' else 0
        m.nodename = m.name + ('.cluster.local' if nodename_style == 'fqdn' and '.' not in m.name else '')
        m.dpod = 'nvidia-dcgm-exporter-' + rid(rng, 5)
        m.npod = 'kube-prometheus-stack-prometheus-node-exporter-' + rid(rng, 5)
        m.podip = '10.244.%d.%d' % (i, rng.randrange(2, 250))
        m.tpod = ('%s-worker-%d' % (main.name, pos)) if m.role == 'main' else ('%s-%d' % (m.job.name, pos) if m.job.name else None)
        m.aliases = sorted({m.name, m.ip, m.nodename, m.name.split('.')[0], m.dpod, m.npod, m.podip, m.ip + ':9100', m.ip + ':9400', m.ip + ':9835', m.podip + ':9400',
                            m.name + ':9100', m.name + ':9400'})
        m.tin = rng.gauss(27, 1.8)
        ms.append(m)
    vm = next((m for m in ms if m.fx), None)

    # which metrics this site has in the dump
    smi_csv = False
    fmt = rng.choices(['qr', 'raw', 'om', 'fed', 'vm', 'grafana', 'smicsv'], [0.28, 0.12, 0.25, 0.08, 0.13, 0.06, 0.08])[0]
    if fmt == 'smicsv' and (dep == 'k8s' or kind in ('nvlink-errors', 'xid-halt', 'silent-slow')):
        fmt = 'om'
    if fmt == 'grafana' and iv == 1:
        fmt = 'qr'
    metrics = list(DCGM_BASE)
    level = rng.choice(['slim', 'default', 'default', 'rich'])
    if level == 'slim':
        metrics += rng.sample(DCGM_DEF[:8], 2)
    elif level == 'default':
        metrics += DCGM_DEF[:rng.choice([4, 6, 10, 16])]
    else:
        metrics += DCGM_DEF[:10] + rng.sample(DCGM_EXTRA, 7)
    need = NEED_DCGM.get(kind, [])
    for x in need:
        if x not in metrics:
            metrics.append(x)
    node_sets = ['cpu', 'mem', 'load', 'net', 'fs']
    if rng.random() < 0.7:
        node_sets.append('disk')
    if fabric != 'eth' and rng.random() < 0.85:
        node_sets.append('ib')
    if fabric == 'roce' and rng.random() < 0.5:
        node_sets.append('rdmahw')
    if rng.random() < 0.3:
        node_sets.append('vmstat')
    if rng.random() < 0.6:
        node_sets.append('up')
    if rng.random() < 0.4 or 'clock-drift' in hts:
        node_sets.append('timex')
    for x in NEED_NODE.get(kind, []):
        if x not in node_sets:
            node_sets.append(x)
    drop_node = level == 'slim' and kind not in NEED_NODE and rng.random() < 0.3
    if drop_node:
        node_sets = ['up'] if kind == 'machine-died' else []
    # budget of samples
    budget = 330000
    kg = T / iv
    while n * 8 * kg * len(metrics) > budget * 0.8 and len(metrics) > 6:
        cand = [x for x in metrics if x not in need and x not in DCGM_BASE]
        if not cand:
            break
        metrics.remove(cand[-1])
    cpu_series = 32
    while cpu_series > 4 and n * cpu_series * (T / node_iv) > 60000:
        cpu_series //= 2
    modes = ['idle'] if cpu_series >= 16 or n > 24 else ['idle', 'user', 'system', 'iowait']
    if n * nib * 4 * (T / node_iv) > 120000:
        nib_out = 1 if not (fx and 'dev' in fx) else None
        nib2 = max(1, min(nib, int(120000 / (n * 4 * T / node_iv)) or 1))
        nib = nib2
        if fx and 'dev' in fx:
            fx['dev'] = fx['dev'] % nib

    store = []      # (name, labels, target, k0, values)

    def put(name, labels, tgt, vals, k0=0):
        if vals:
            store.append((name, labels, tgt, k0, vals))

    smi = dep == 'cloud'
    for m in ms:
        f = m.fx
        died = f['t0'] if f and f.get('died') else None
        gaps_d, gaps_n = list(prom_gap), list(prom_gap)
        end_d = end_n = died
        i = m.i
        if cast.get('exporter-restart') == i:
            a = rng.uniform(0.1 * T, 0.9 * T)
            (gaps_d if rng.random() < 0.7 else gaps_n).append((a, a + max(iv, rng.uniform(20, 75))))
        if cast.get('late-scrape') == i:
            lag = min(max(iv * rng.choice([1, 2, 3]), 20), 120)
            end_d = min(end_d or 1e9, T - lag)
            if rng.random() < 0.3:
                end_n = min(end_n or 1e9, T - lag)
        # labels
        if dep == 'k8s':
            dl = {'instance': m.podip + ':9400', 'job': 'nvidia-dcgm-exporter', 'namespace': 'gpu-operator', 'pod': m.dpod, 'container': 'nvidia-dcgm-exporter',
                  'endpoint': 'gpu-metrics', 'service': 'nvidia-dcgm-exporter'}
            nl = {'instance': m.ip + ':9100', 'job': 'node-exporter', 'namespace': 'monitoring', 'pod': m.npod, 'container': 'node-exporter', 'endpoint': 'http-metrics',
                  'service': 'kube-prometheus-stack-prometheus-node-exporter'}
            if node_label:
                dl['node'] = nl['node'] = m.name
        elif dep == 'cloud':
            dl = {'instance': m.ip + ':9835', 'job': 'nvidia-gpu-exporter'}
            nl = {'instance': m.ip + ':9100', 'job': 'node'}
        else:
            h = m.name if inst_style == 'name' else m.ip
            dl = {'instance': h + ':9400', 'job': 'dcgm'}
            nl = {'instance': h + ':9100', 'job': 'node'}
            if dep == 'slurm':
                dl['cluster'] = nl['cluster'] = 'hpc1'
        tn = Target(rng, node_iv, T, nl, miss, gaps_n, end_n)
        td = None
        m.csv = None
        if m.gpus:
            td = Target(rng, iv, T, dl, miss, gaps_d, end_d)
            gpu_part(rng, m, td, metrics, put, dict(dep=dep, smi=smi, model=model, hw=hw, C=C, idle_clock=idle_clock, pos_grad=pos_grad, host_label=host_label,
                     pod_hostname=pod_hostname, slurm_id=slurm_id, stage_mem=stage_mem, stage_pw=stage_pw, fb_same=fb_same, cast=cast, hts=hts, fmt=fmt, jobseq=jobseq, T=T, main=main))
        if node_sets:
            node_part(rng, m, tn, node_sets, put, dict(dep=dep, ncpu=ncpu, cpu_series=cpu_series, modes=modes, nib=nib, fabric=fabric, cast=cast, T=T, main=main, base=base))
        if 'up' in node_sets:
            for tg, dead, alive in ((tn, died, end_n), (td, died, end_d)):
                if tg is None:
                    continue
                okk = set(tg.ks)
                ks = [k for k, t in tg.all if k in okk or not any(a <= t < b for a, b in prom_gap)]
                if cast.get('late-scrape') == i and not died:
                    ks = [k for k in ks if k in okk or k < (tg.ks[-1] if tg.ks else 0)]
                at = {k: t for k, t in tg.all}
                o = tg.sub([round(at[k], 3) for k in ks], ks)
                put('up', dict(tg.labels), o, ['1' if k in okk else '0' for k in ks])
    if dep == 'k8s' and (pod_hostname or rng.random() < 0.4):
        tk = Target(rng, 30, T, {}, 0, prom_gap)
        for m in ms:
            for pod, ns in ((m.dpod, 'gpu-operator'), (m.npod, 'monitoring')):
                if pod == m.dpod and not m.gpus:
                    continue
                put('kube_pod_info', {'namespace': ns, 'pod': pod, 'node': m.name, 'host_ip': m.ip, 'pod_ip': m.podip if pod == m.dpod else m.ip, 'created_by_kind': 'DaemonSet', 'created_by_name': pod.rsplit('-', 1)[0], 'uid': uuid(rng), 'host_network': 'true' if pod == m.npod else 'false', 'priority_class': 'system-node-critical',
                    'instance': '10.244.0.9:8080', 'job': 'kube-state-metrics'}, tk, ['1'] * tk.K)

    # job.json
    job = None
    has_main_only = len([m for m in ms if m.role != 'main']) == 0
    if rng.random() < (0.5 if has_main_only else 0.8):
        job = {'name': main.name, 'worldSize': nmain * 8}
        if pp > 1 or rng.random() < 0.7:
            job['parallel'] = {'tp': 8, 'pp': pp, 'dp': nmain // pp}
            job['rankOrder'] = 'tp-dp-pp'
        if not has_main_only or rng.random() < 0.75:
            job['ranks'] = [{'rank': p * 8 + g, 'machine': ms[p].name, 'gpu': g} for p in range(nmain) for g in range(8)]
        if rng.random() < 0.08:
            inn = vm if vm and rng.random() < 0.5 else ms[rng.randrange(nmain)]
            job['incidents'] = {inn.name: rng.choice([1, 2, 3])}
            traits.append('incidents')
    if pod_hostname and job is not None and rng.random() < 0.6:
        job['machineNames'] = {m.name: [m.ip, m.dpod] for m in ms if m.role == 'main'}
    if dep == 'cloud' or (dep != 'k8s' and inst_style == 'ip') or nodename_style == 'fqdn':
        if job is not None and 'machineNames' not in job and rng.random() < 0.5:
            job['machineNames'] = {m.name: [m.ip] + ([m.nodename] if m.nodename != m.name else []) for m in ms if m.role == 'main'}
    os.makedirs(os.path.join(outdir, case, 'input'), exist_ok=True)
    stride = 2 if fmt == 'qr' and iv <= 15 and rng.random() < 0.12 else 1
    write_files(rng, os.path.join(outdir, case, 'input'), fmt, store, ms, base, iv, stride, dep)
    if job:
        with open(os.path.join(outdir, case, 'job.json'), 'w') as fh:
            json.dump(job, fh)
    truth = {'case': case, 'kind': 'faulty' if kind else 'healthy', 'fault': kind, 'machine': vm.name if vm else None,
             'severity': fx['sev'] if fx else None, 'since': (base + max(0, fx['t0'])) if fx else None, 'start': base, 'end': base + T,
             'shown_s': round(T - max(0, fx['t0'])) if fx else None, 'slow_factor': round(fx['F'], 3) if fx else None,
             'halt': round(base + fx['halt']) if fx and fx['halt'] else None, 'exit': round(base + main.exit) if main.exit else None, 'sick_gpus': fx['sick'] if fx else None,
             'interval': iv, 'node_interval': node_iv, 'seconds': round(T), 'machines': n, 'job_machines': nmain, 'pp': pp, 'deployment': dep, 'format': fmt, 'model': model,
             'fabric': fabric, 'tau': round(main.tau, 2), 'metrics': metrics if not smi else [SMI_OF[x] for x in metrics if x in SMI_OF], 'node_sets': node_sets,
             'job_json': bool(job), 'job_ranks': bool(job and 'ranks' in job), 'traits': traits, 'cast': {h: ms_name(ms, i) for h, i in cast.items()},
             'samples': sum(len(s[4]) for s in store), 'aliases': {m.name: m.aliases for m in ms}, 'roles': {m.name: m.role for m in ms if m.role != 'main'}}
    with open(os.path.join(outdir, case, 'truth.json'), 'w') as fh:
        json.dump(truth, fh, indent=1)
    return truth


def ms_name(ms, i):
    return next(m.name for m in ms if m.i == i)


# --------------------------------------------------------------------------------------------------- GPU metrics
def gpu_part(rng, m, td, metrics, put, o):
    K = td.K
    if K < 2:
        return
    hw, job, fx, C = o['hw'], m.job, m.fx, o['C']
    ts = td.ts
    if C > 1:
        off = rng.uniform(0, C)
        tc = [math.floor((t - off) / C) * C + off for t in ts]
    else:
        tc = [t - 0.05 for t in ts]
    g1 = [min(len(job.code) - 1, max(0, int((t + LEAD) / DT))) for t in tc]
    wC = max(4, int(max(C, 1) / DT))
    gC = [max(0, g - wC) for g in g1]
    g0 = [max(0, g - 4) for g in g1]
    gT = [max(0, g - 180) for g in g1]
    code = [job.code[g] for g in g1]
    n1 = 0.25

    def avg(cum, a, w):
        return [(cum[y] - cum[x]) * w for x, y in zip(a, g1)]
    cache = {}

    def lists(role, hang):
        k = (role, hang)
        if k not in cache:
            cc, cs, ct, cw = job.cls(role, hang)
            cache[k] = (avg(cc, g0, n1), avg(cs, g0, n1), avg(cc, gC, 1 / wC), avg(cs, gC, 1 / wC), avg(ct, gC, 1 / wC), avg(cc, gT, 1 / 180), avg(cs, gT, 1 / 180), ct, avg(cw, gC, 1 / wC))
        return cache[k]
    S = None
    if fx:
        S = [fx['S'][min(len(fx['S']) - 1, max(0, int(t)))] for t in tc]
    tdp, idle = hw['tdp'], hw['idle']
    hot = rng.uniform(9, 15) if o['cast'].get('hot-machine') == m.i else 0
    rth = rng.uniform(0.046, 0.054) * 700 / tdp
    sp = o['stage_pw'][m.stage] if m.role == 'main' else 1.0
    smem = (o['stage_mem'][m.stage] if m.role == 'main' else rng.uniform(0.2, 0.9)) * hw['fb']
    oldx = rng.choice([13, 31, 43, 45, 63]) if o['cast'].get('old-xid') == m.i else 0
    oldg = rng.randrange(8)
    olde = o['cast'].get('old-ecc') == m.i
    rstart = next((k for k, t in enumerate(tc) if job.restart and t >= job.restart[0]), None) if job.restart else None
    Pc0, Ps = tdp * job.compp * sp, tdp * job.spinp
    want = set(metrics)
    m.csv = {}
    drv = '550.90.07'
    bus = ['1B', '43', '52', '61', '9D', 'C3', 'D1', 'DF']
    kv = None                                          # GPU vanished from this sample on
    all_vanish = False
    if fx and fx.get('vanish'):
        kv = next((k for k, t in enumerate(ts) if t >= fx['t0'] + 2), K)
        all_vanish = o['smi'] and rng.random() < 0.5
    khalt = next((k for k, t in enumerate(tc) if fx and fx['halt'] is not None and t >= fx['halt']), None) if fx else None
    kx = next((k for k, t in enumerate(tc) if fx and t >= fx['t0']), None) if fx else None
    for g in range(8):
        sick = bool(fx and g in fx['sick'])
        role = ('ok' if not fx else fx['role'] if sick else fx['rest'])
        hang = 'spin' if not fx else fx['hang'] if sick else fx['rest_hang']
        if o['main'].mode == 'net' and role == 'ok':
            role = 'ok'
        c1, s1, cC, sC, tC, cT, sT, ctr, wkC = lists(role, hang)
        gain = 1 + rng.gauss(0, 0.024)
        tg = m.tin + o['pos_grad'][g] + hot + rng.gauss(0, 1.2)
        lot = rng.choice([0, 0, 15, 30, 60]) if job.compp > 0.93 else rng.choice([0, 0, 0, 15])
        u = uuid(rng)
        Pc = Pc0 * gain
        e = nz(rng, K)
        if sick and 'pr' in fx:
            pr = [1 - s * (1 - fx['pr']) for s in S]
            P = [idle + a * (Pc * p - idle) + b * (Ps - idle) + 0.015 * tdp * n * (0.15 + a) for a, b, p, n in zip(c1, s1, pr, e)]
        else:
            P = [idle + a * (Pc - idle) + b * (Ps - idle) + 0.015 * tdp * n * (0.15 + a) for a, b, n in zip(c1, s1, e)]
        if sick and fx.get('stray'):
            P = [p + s * (0.35 * tdp if a + b > 0.3 else 0.55 * tdp) * (1 - 0.8 * a) for p, s, a, b in zip(P, S, c1, s1)]
        if sick and fx.get('cap'):
            cap = fx['cap'] * tdp
            P = [min(p, cap * (1 + 0.01 * n)) if s > 0.5 else p for p, s, n in zip(P, S, e)]
        P = [min(p, tdp * 1.02) for p in P]
        Pth = [idle + a * (Pc - idle) + b * (Ps - idle) for a, b in zip(cT, sT)]
        if sick and ('pr' in fx):
            Pth = [p * (1 - 0.8 * s * (1 - fx['pr'])) for p, s in zip(Pth, S)]
        if sick and fx.get('stray'):
            Pth = [p + s * 0.25 * tdp for p, s in zip(Pth, S)]
        V = {}
        e2 = nz(rng, K)
        V['DCGM_FI_DEV_POWER_USAGE'] = ['%.3f' % p for p in P]
        tmax = 84
        tv = [min(tmax, tg + p * rth + 0.4 * n) for p, n in zip(Pth, e2)]
        if sick and 'temp_to' in fx:
            h, last, out = (1.0 if fx['t0'] < 0 else 0.0), tc[0], []
            for t, s, c, n, x in zip(tv, S, code, e2, tc):
                goal = (1.0 if s > 0.5 else 0.8 if s > 0 and h > 0.5 else s) if c in (TRAIN, WARM, EVAL) else 0.55 * min(1, s * 2)
                h += (goal - h) * (1 - math.exp(-max(0, x - last) / 25))
                last = x
                out.append(t + h * (fx['temp_to'] - t) + 0.6 * n * h)
            tv = out
        V['DCGM_FI_DEV_GPU_TEMP'] = [SI[int(t + 0.5)] for t in tv]
        if 'DCGM_FI_DEV_MEMORY_TEMP' in want:
            V['DCGM_FI_DEV_MEMORY_TEMP'] = [SI[int(t + 6)] for t in tv]
        stray = sick and fx.get('stray')
        V['DCGM_FI_DEV_GPU_UTIL'] = [SI[max(0, min(100, int(100 * min(1, a + b) + 0.5 - (abs(n) * 1.2 if a + b > 0.02 else 0) + (100 * s if stray else 0))))] for a, b, n, s in zip(c1, s1, e2, S or e2)]
        bst, ic = hw['boost'], hw['idleclk'] if o['idle_clock'] else hw['boost']
        if sick and 'clk_r' in fx:
            r, stuck = fx['clk_r'], fx.get('stuck')
            wob = 0 if stuck else 0.03
            V['DCGM_FI_DEV_SM_CLOCK'] = [SI[int(((bst - (lot if a > 0.3 else 0)) if (a + b > 0.05 or (s and stuck)) else ic) * (1 - s * (1 - r) * (1 + wob * n)) // 15 * 15)] for a, b, s, n in zip(c1, s1, S, e2)]
        else:
            V['DCGM_FI_DEV_SM_CLOCK'] = [SI[(bst - (lot + (15 if n > 1 else 0) if a > 0.3 and lot else 0)) if a + b > 0.05 else ic] for a, b, n in zip(c1, s1, e2)]
        # memory in use
        fb = int(smem * (1 + (0.003 if o['fb_same'] else 0.02) * rng.gauss(0, 1)))
        cidle = rng.choice([4, 4, 555])
        V0 = []
        for k in range(K):
            c = code[k]
            x = cidle if c == IDLE else int(fb * 0.3) if c == LOAD else fb
            if khalt is not None and k >= khalt and hang == 'gone':
                x = cidle
            V0.append(x)
        if stray:
            V0 = [min(hw['fb'] - 300, x + (fx['fb_add'] if s > 0 else 0)) for x, s in zip(V0, S)]
        V['DCGM_FI_DEV_FB_USED'] = [SI[x] if x <= 20000 else str(x) for x in V0]
        if 'DCGM_FI_DEV_FB_FREE' in want:
            V['DCGM_FI_DEV_FB_FREE'] = [str(hw['fb'] - 600 - x) for x in V0]
        q = None
        if sick and fx['role'] == 'gpu' and 'tens_q' in fx:        # same clock, the same work takes longer: thinner activity
            q = [1 / (1 + s * (fx['comp_s'] - 1)) for s in S]
        tens, dram = job.tens, job.dram
        if 'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE' in want:
            V['DCGM_FI_PROF_PIPE_TENSOR_ACTIVE'] = ['%.6f' % max(0, tens * a * (1 + 0.015 * n)) for a, n in zip(cC, e)] if not q else ['%.6f' % max(0, tens * a * y * (1 + 0.015 * n)) for a, n, y in zip(cC, e, q)]
        if 'DCGM_FI_PROF_GR_ENGINE_ACTIVE' in want:
            V['DCGM_FI_PROF_GR_ENGINE_ACTIVE'] = ['%.6f' % max(0, min(1, (a + b) * (0.995 - 0.004 * abs(n)))) for a, b, n in zip(cC, sC, e)]
        if 'DCGM_FI_PROF_SM_ACTIVE' in want:
            V['DCGM_FI_PROF_SM_ACTIVE'] = ['%.6f' % max(0, min(1, (0.85 * a + 0.13 * b) * (1 + 0.01 * n) + (0.3 * s if stray else 0))) for a, b, n, s in zip(cC, sC, e, S or e)]
        if 'DCGM_FI_PROF_DRAM_ACTIVE' in want:
            ml = 1 / 0.6 if sick and fx.get('memlow') else 1
            V['DCGM_FI_PROF_DRAM_ACTIVE'] = ['%.6f' % max(0, min(1, (dram * a * (1 + (ml - 1) * (s if ml > 1 else 0)) + 0.04 * b) * (1 + 0.02 * n) + (0.15 * s if stray else 0))) for a, b, n, s in zip(wkC, sC, e, S or e)]
        if 'DCGM_FI_DEV_MEM_COPY_UTIL' in want:
            V['DCGM_FI_DEV_MEM_COPY_UTIL'] = [SI[max(0, min(100, int(100 * (dram * 0.9 * a + 0.06 * b) + 1.5 * n)))] for a, b, n in zip(c1, s1, e)]
        if 'DCGM_FI_DEV_MEM_CLOCK' in want:
            if sick and fx.get('memlow'):
                V['DCGM_FI_DEV_MEM_CLOCK'] = [SI[hw['lowmem'] if s > 0.5 else hw['mem']] for s in S]
            else:
                V['DCGM_FI_DEV_MEM_CLOCK'] = [SI[hw['mem']]] * K
        for nm, sc in (('DCGM_FI_PROF_PCIE_RX_BYTES', 1.0), ('DCGM_FI_PROF_PCIE_TX_BYTES', 0.7)):
            if nm in want:
                V[nm] = ['%d' % max(0, sc * job.pciebw * (0.3 * a + t) * (1 + 0.05 * n) + 2e5) for a, t, n in zip(wkC, tC, e)]
        for nm in ('DCGM_FI_PROF_NVLINK_TX_BYTES', 'DCGM_FI_PROF_NVLINK_RX_BYTES'):
            if nm in want:
                V[nm] = ['%d' % max(0, job.nvbw * (0.5 * a + t) * (1 + 0.02 * n)) for a, t, n in zip(wkC, tC, e)]
        if 'DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL' in want:       # MB/s in practice
            V['DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL'] = ['%d' % max(0, job.nvbw / 1e6 * (0.5 * a + t) * (1 + 0.02 * n)) for a, t, n in zip(wkC, tC, e)]
        if 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION' in want:
            V['DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION'] = counter(rng, [p * 1000 for p in P], ts, rng.uniform(1e11, 9e12), 0.01)
        if 'DCGM_FI_DEV_PCIE_REPLAY_COUNTER' in want:
            r0 = rng.choice([0, 0, 0, 1, 7])
            V['DCGM_FI_DEV_PCIE_REPLAY_COUNTER'] = counter(rng, [fx['replay'] * s for s in S], ts, r0, 0.3) if sick and fx.get('replay') else [SI[r0]] * K
        if 'DCGM_FI_DEV_PCIE_LINK_WIDTH' in want:
            V['DCGM_FI_DEV_PCIE_LINK_WIDTH'] = [SI[fx['width'] if s > 0.5 else 16] for s in S] if sick and 'width' in fx else ['16'] * K
        if 'DCGM_FI_DEV_PCIE_LINK_GEN' in want:
            gn = hw['gen']
            V['DCGM_FI_DEV_PCIE_LINK_GEN'] = [SI[1 + (gn > 4) if s > 0.5 else gn] for s in S] if sick and fx.get('gen_down') else [SI[gn]] * K
        xv = [SI[oldx if g == oldg else 0]] * K
        if sick and fx.get('xid') and kx is not None:
            xv = xv[:kx] + [SI[fx['xid']]] * (K - kx)
        if sick and fx.get('xid_on_halt') and khalt is not None:
            xv = xv[:khalt] + [SI[fx['xid_on_halt']]] * (K - khalt)
        V['DCGM_FI_DEV_XID_ERRORS'] = xv
        ue, ce = (rng.choice([1, 2, 4]), rng.choice([0, 3, 9])) if olde and g == oldg else (0, 0)
        ecc = bool(sick and fx.get('ecc') and kx is not None)
        add = rng.choice([1, 1, 2])

        def stepc(v0, inc):
            return [SI[v0]] * K if not ecc else [SI[v0]] * kx + [SI[v0 + inc]] * (K - kx)
        V['DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS'] = stepc(ue, add)
        V['DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS'] = [SI[ce]] * K
        V['DCGM_FI_DEV_ROW_REMAP_FAILURE'] = ['0'] * K
        V['DCGM_FI_DEV_ECC_SBE_VOL_TOTAL'] = [SI[ce * 7]] * K
        V['DCGM_FI_DEV_ECC_DBE_VOL_TOTAL'] = stepc(ue, rng.choice([1, 1, 3, 12]))
        if 'DCGM_FI_DEV_THERMAL_VIOLATION' in want:
            i0 = rng.choice([0, 0, rng.randrange(10 ** 6)])
            V['DCGM_FI_DEV_THERMAL_VIOLATION'] = counter(rng, [s * 6e5 for s in S], ts, i0, 0.1) if sick and fx.get('viol') == 'THERMAL' else [str(i0)] * K
        if 'DCGM_FI_DEV_POWER_VIOLATION' in want:
            bp = 2e5 if job.compp > 0.95 else 0
            V['DCGM_FI_DEV_POWER_VIOLATION'] = counter(rng, [bp * a + (s * 7e5 if sick and fx.get('viol') == 'POWER' else 0) for a, s in zip(cC, S or e)], ts, rng.randrange(10 ** 8), 0.1)
        if 'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS' in want:
            thr = fx.get('thr', 0) if sick else 0
            V['DCGM_FI_DEV_CLOCK_THROTTLE_REASONS'] = [SI[(1 if a + b < 0.05 else 4 if lot and a > 0.5 else 0) | (thr if S and s > 0.3 else 0)] for a, b, s in zip(c1, s1, S or c1)]
        for nm in ('DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL', 'DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL'):
            if nm in want:
                V[nm] = counter(rng, [fx['nvl'] * s * (1 if 'CRC' in nm else 0.3) for s in S], ts, 0, 0.3) if sick and fx.get('nvl') else ['0'] * K
        cut = K
        if kv is not None and (sick or all_vanish):
            cut = kv
        if o['fmt'] == 'smicsv':
            m.csv[g] = (ts, [V.get(d) for d, _, _ in SMI_CSV if d in want or d in DCGM_BASE], cut, [x for x in SMI_CSV if x[0] in want or x[0] in DCGM_BASE])
            continue
        # labels
        if o['smi']:
            lab = dict(td.labels, uuid=u)
            put('nvidia_smi_gpu_info', dict(lab, name=o['model'], index=str(g), driver_version=drv, pci_bus_id='00000000:%s:00.0' % bus[g], vbios_version='96.00.89.00.01', serial='[N/A]'), td, ['1'] * cut)
            for d in metrics:
                if d not in SMI_OF or d not in V:
                    continue
                v = V[d][:cut]
                if d in ('DCGM_FI_DEV_GPU_UTIL', 'DCGM_FI_DEV_MEM_COPY_UTIL'):
                    v = [('%.2f' % (int(x) / 100)).rstrip('0').rstrip('.') for x in v]
                elif d in ('DCGM_FI_DEV_SM_CLOCK', 'DCGM_FI_DEV_MEM_CLOCK'):
                    v = [x + '000000' for x in v]
                elif d == 'DCGM_FI_DEV_FB_USED':
                    v = [str(int(x) << 20) for x in v]
                elif d == 'DCGM_FI_DEV_POWER_USAGE':
                    v = [x[:-1] for x in v]
                put(SMI_OF[d], lab, td, v)
                if d == 'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS':
                    for nm, bit in (('hw_thermal_slowdown', 0x40), ('sw_thermal_slowdown', 0x20), ('sw_power_cap', 4), ('hw_power_brake_slowdown', 0x80)):
                        put('nvidia_smi_clocks_event_reasons_' + nm, lab, td, ['1' if int(x) & bit else '0' for x in v])
            continue
        hl = o['host_label']
        if o['dep'] == 'mixed':
            hl = 'hostname' if m.i % 2 else 'Hostname'
        lab = dict(td.labels, gpu=str(g), UUID='GPU-' + u, pci_bus_id='00000000:%s:00.0' % bus[g], device='nvidia%d' % g, modelName=o['model'], DCGM_FI_DRIVER_VERSION=drv)
        lab[hl] = m.dpod if o['pod_hostname'] else m.name
        splits = [(0, cut, lab)]
        if o['dep'] == 'k8s' and m.tpod:
            la = dict(lab, exported_pod=m.tpod, exported_namespace='ml', exported_container='pytorch')
            if rstart is not None and rstart < cut:
                lb = dict(la, exported_pod=m.tpod + '-' + o['jobseq'])
                splits = [(0, rstart, la), (rstart, cut, lb)]
            else:
                splits = [(0, cut, la)]
        elif o['dep'] == 'slurm' and m.tpod and m.role in ('main', 'tenant'):
            splits = [(0, cut, dict(lab, hpc_job=o['slurm_id'] if m.role == 'main' else str(int(o['slurm_id']) + 17)))]
        for d in metrics:
            if d not in V:
                continue
            if o['dep'] == 'mixed' and m.i % 3 == 1 and d.startswith('DCGM_FI_PROF_PCIE'):
                continue
            for a, b, la in splits:
                put(d, la, td, V[d][a:b], a)
    if o['smi'] and o['fmt'] != 'smicsv':
        put('nvidia_smi_command_exit_code', dict(td.labels), td, ['0'] * (kv if kv is not None else K) + (['15'] * (K - kv) if kv is not None else []))


# --------------------------------------------------------------------------------------------------- host metrics
def node_part(rng, m, tn, sets, put, o):
    K = tn.K
    if K < 2:
        return
    job, fx, ts, g = m.job, m.fx, tn.ts, tn.g
    g = [min(x, len(job.code) - 1) for x in g]
    L = tn.labels
    code = [job.code[x] for x in g]
    S = [fx['S'][min(len(fx['S']) - 1, max(0, int(t)))] for t in ts] if fx else [0.0] * K
    halt = fx['halt'] if fx else None
    gone = [bool(halt is not None and t >= halt and fx['rest_hang'] == 'gone') for t in ts]
    tgt = tn
    rank0 = m.pos == 0
    upl = o['cast'].get('uploader') == m.i
    upt = None
    if upl:
        a = rng.uniform(0, o['T'] * 0.7)
        upt = (a, a + rng.uniform(60, 400))
    put('node_uname_info', dict(L, nodename=m.nodename, machine='x86_64', sysname='Linux', release='5.15.0-105-generic', domainname='(none)', version='#115-Ubuntu SMP'), tgt, ['1'] * K)
    e = nz(rng, K)
    base = {IDLE: 0.006, TRAIN: job.cpu, CKPT: job.cpu * 1.1 + 0.03, EVAL: job.cpu * 0.8, LOAD: job.cpu * 0.7 + 0.15, WARM: job.cpu, HANG: 8.5 / o['ncpu']}
    busy = [0.008 if x else base[c] for c, x in zip(code, gone)]
    if m.role == 'preprocess':
        busy = [0.75] * K
    if m.role == 'login':
        busy = [0.05 + 0.03 * abs(x) for x in nz(rng, K)]
    if rank0 and m.role == 'main':
        busy = [b + 0.01 if c != IDLE else b for b, c in zip(busy, code)]
    if upt:
        busy = [b + 0.025 if upt[0] <= t < upt[1] else b for b, t in zip(busy, ts)]
    iow = [0.001] * K
    if fx and 'cpu_to' in fx:
        busy = [b + s * max(0, fx['cpu_to'] - b) for b, s in zip(busy, S)]
    dslow = fx and fx.get('disk')
    if dslow:
        w = (0.02 + 0.15 * fx['lvl']) if dslow == 'slow' else 0.01 + 0.03 * fx['lvl']
        iow = [0.001 + w * s * (0 if x else 1) for s, x in zip(S, gone)]
        busy = [max(0.01, b * (1 - 0.3 * s)) for b, s in zip(busy, S)]
    if fx and fx.get('memp'):
        iow = [0.001 + (0.01 + 0.06 * fx['lvl']) * s for s in S]
        busy = [b + 0.03 * s for b, s in zip(busy, S)]
    busy = [max(0.002, min(0.999, b * (1 + 0.04 * n))) for b, n in zip(busy, e)]
    iow = [max(0, w * (1 + 0.2 * n)) for w, n in zip(iow, nz(rng, K))]
    if 'cpu' in sets:
        boot = rng.uniform(1e5, 9e6)
        for c in range(o['cpu_series']):
            ee = nz(rng, K)
            k1 = 1 + 0.08 * rng.gauss(0, 1)
            for mode in o['modes']:
                if mode == 'idle':
                    r = [max(0.0, min(1, 1 - b * k1 - w + 0.01 * n)) for b, w, n in zip(busy, iow, ee)]
                elif mode == 'user':
                    r = [max(0.0, min(1, b * k1 * 0.85)) for b in busy]
                elif mode == 'system':
                    r = [max(0.0, min(1, b * k1 * 0.14)) for b in busy]
                else:
                    r = [max(0.0, min(1, w)) for w in iow]
                v, last, out = boot * {'idle': 0.85, 'user': 0.1, 'system': 0.03, 'iowait': 0.001}[mode] * k1, ts[0], []
                for x, t in zip(r, ts):
                    v += x * (t - last)
                    last = t
                    out.append('%.2f' % v)
                put('node_cpu_seconds_total', dict(L, cpu=str(c), mode=mode), tgt, out)
    if 'load' in sets:
        v, out, last = busy[0] * o['ncpu'], [], ts[0]
        for b, w, t in zip(busy, iow, ts):
            a = 1 - math.exp(-(t - last) / 60)
            last = t
            over = 1.6 if fx and 'cpu_to' in fx and b > 0.5 else 1.0
            v += a * ((b * over + w) * o['ncpu'] - v)
            out.append('%.2f' % max(0, v))
        put('node_load1', L, tgt, out)
        put('node_procs_blocked', L, tgt, [SI[int(w * 60 + max(0, n))] if w > 0.005 else '0' for w, n in zip(iow, e)])
    if 'mem' in sets:
        tot = 2113000000000
        used = {IDLE: 0.02, LOAD: 0.1}
        ub = rng.uniform(0.12, 0.35) if m.role != 'main' else o['main'].cpu * 0.8 + 0.1
        fr = [0.02 if x else used.get(c, ub) for c, x in zip(code, gone)]
        fr = [x + 0.003 * n for x, n in zip(fr, e)]
        sw = [0.0] * K
        if fx and fx.get('memp'):
            to = 0.965 + 0.025 * fx['lvl']
            fr = [x + (to - x) * s if not y else 0.03 for x, s, y in zip(fr, S, gone)]
            sw = [0.3 * s * (0.5 + fx['lvl'] * 0.5) for s in S]
        put('node_memory_MemTotal_bytes', L, tgt, [str(tot)] * K)
        put('node_memory_MemAvailable_bytes', L, tgt, ['%d' % (tot * max(0.003, 1 - x)) for x in fr])
        if 'vmstat' in sets or (fx and fx.get('memp')) or K * 0 == 0 and o['nib'] > 3:
            put('node_memory_SwapTotal_bytes', L, tgt, ['34359734272'] * K)
            put('node_memory_SwapFree_bytes', L, tgt, ['%d' % (34359734272 * (1 - min(1, 3 * x))) for x in sw])
            put('node_vmstat_pgmajfault', L, tgt, counter(rng, [0.5 + (fx['lvl'] * 8000 + 300) * s if fx and fx.get('memp') else 0.5 for s in S], ts, rng.randrange(10 ** 5), 0.2))
            put('node_vmstat_oom_kill', L, tgt, ['1' if fx and fx.get('oom') and halt and t >= halt else '0' for t in ts])
    ck = [1.0 if c == CKPT else 0.0 for c in code]
    if job.ckpt_style == 'rank0' and not rank0:
        ck = [0.0] * K
    if 'disk' in sets:
        rd = [3e4 if c in (IDLE, HANG) else 2e7 if c != LOAD else 6e8 for c in code]
        wr = [4e4 if c == IDLE else 3e5 + 9e8 * x for c, x in zip(code, ck)]
        bz = [0.002 if c == IDLE else 0.02 + 0.4 * x for c, x in zip(code, ck)]
        if dslow == 'slow':
            rd = [r * (1 - 0.4 * s) for r, s in zip(rd, S)]
            bz = [b + s * (rng.uniform(0.75, 0.99) - b) if c not in (IDLE, HANG) else b for b, s, c in zip(bz, S, code)]
        if dslow == 'full':
            wr = [w * (1 - 0.95 * s) for w, s in zip(wr, S)]
            bz = [b + s * 0.1 for b, s in zip(bz, S)]
        if fx and fx.get('memp'):
            rd = [r + s * 3e8 for r, s in zip(rd, S)]
            bz = [min(0.98, b + s * 0.6) for b, s in zip(bz, S)]
        put('node_disk_read_bytes_total', dict(L, device='nvme0n1'), tgt, counter(rng, rd, ts, rng.uniform(1e11, 9e12), 0.2))
        put('node_disk_written_bytes_total', dict(L, device='nvme0n1'), tgt, counter(rng, wr, ts, rng.uniform(1e11, 9e12), 0.2))
        v, last, out = rng.uniform(1e3, 1e5), ts[0], []
        for b, t, n in zip(bz, ts, e):
            v += max(0, b * (1 + 0.1 * n)) * (t - last)
            last = t
            out.append('%.3f' % v)
        put('node_disk_io_time_seconds_total', dict(L, device='nvme0n1'), tgt, out)
    if 'fs' in sets:
        for mp, dev, size in (('/', '/dev/nvme0n1p2', 1888000000000), ('/local', '/dev/md0', 30700000000000)):
            u0 = rng.uniform(0.15, 0.6)
            if dslow == 'full' and mp == '/local':
                av = [size * max(0.0, (1 - u0) * (1 - s)) for s in S]
            else:
                av = [size * (1 - u0)] * K
            put('node_filesystem_size_bytes', dict(L, device=dev, fstype='ext4', mountpoint=mp), tgt, [str(size)] * K)
            put('node_filesystem_avail_bytes', dict(L, device=dev, fstype='ext4', mountpoint=mp), tgt, ['%d' % x for x in av])
    if 'net' in sets:
        dev = 'eth0' if o['dep'] in ('cloud', 'k8s') else 'bond0'
        tx = [2e4 if c in (IDLE,) else 6e5 for c in code]
        rx = [2e4 if c == IDLE else 4e5 + 2.2e7 * (c == TRAIN) for c in code]
        tx = [x + 4e8 * y for x, y in zip(tx, ck)]
        if rank0 and m.role == 'main':
            tx = [x * 2.5 if c != IDLE else x for x, c in zip(tx, code)]
        if upt:
            tx = [x + 3.5e8 if upt[0] <= t < upt[1] else x for x, t in zip(tx, ts)]
        if o['fabric'] == 'eth' and m.role in ('main', 'tenant'):
            tr = job.cls('ok')[2]
            gg = g
            vt = from_cum(rng, tr, gg, job.netbw * 0.3 * DT, rng.uniform(1e12, 9e13))
            vr = from_cum(rng, tr, gg, job.netbw * 0.3 * DT, rng.uniform(1e12, 9e13))
        else:
            vt = counter(rng, tx, ts, rng.uniform(1e9, 9e12), 0.2)
            vr = counter(rng, rx, ts, rng.uniform(1e9, 9e12), 0.2)
        if o['cast'].get('counter-reset') == m.i:
            kr = rng.randrange(1, K)
            b0, b1 = int(vt[kr]), int(vr[kr])
            vt = vt[:kr] + [str(int(x) - b0) for x in vt[kr:]]
            vr = vr[:kr] + [str(int(x) - b1) for x in vr[kr:]]
        put('node_network_transmit_bytes_total', dict(L, device=dev), tgt, vt)
        put('node_network_receive_bytes_total', dict(L, device=dev), tgt, vr)
        if dev == 'bond0':
            for k, sl in enumerate(('eno1', 'eno2')):
                put('node_network_transmit_bytes_total', dict(L, device=sl), tgt, [str(int(x) // 2 + k) for x in vt])
                put('node_network_receive_bytes_total', dict(L, device=sl), tgt, [str(int(x) // 2 + k) for x in vr])
        if o['nib'] > 2:
            d0 = rng.choice([0, 0, 12, 340])
            put('node_network_receive_drop_total', dict(L, device=dev), tgt, [SI[d0]] * K)
    if 'ib' in sets and m.role in ('main', 'tenant', 'idle', 'notebook'):
        tr = job.cls('ok', 'spin')[2]
        rate = {'ib': 50000000000, 'roce': 50000000000}.get(o['fabric'], 50000000000)
        reset = o['cast'].get('counter-reset') == m.i
        kr = rng.randrange(1, K)
        sname = 'mlx5_%d'
        for d in range(o['nib']):
            lab = dict(L, device=sname % d, port='1')
            bad = bool(fx and fx.get('dev') == d)
            sc = job.netbw * DT
            down = [False] * K
            downs = [0] * K
            if bad and fx.get('flap'):
                iv, t = [], max(0.0, fx['t0'])
                while t < o['T']:
                    dd = rng.uniform(4, 30 + 40 * fx['lvl'])
                    iv.append((t, t + dd))
                    t += dd + rng.uniform(20, 160 - 100 * fx['lvl'])
                if halt and rng.random() < 0.5:
                    iv.append((halt, 1e9))
                down = [any(a <= x < b for a, b in iv) for x in ts]
                downs = [sum(a <= x for a, b in iv) for x in ts]
            vals = []
            for dirn in ('transmitted', 'received'):
                i0 = rng.uniform(1e13, 9e14)
                v = from_cum(rng, tr, g, sc * (1 + rng.gauss(0, 0.004)), i0)
                if bad and fx.get('flap'):
                    x, out, prev = int(v[0]), [v[0]], int(v[0])
                    for k in range(1, K):
                        cur = int(v[k])
                        x += int((cur - prev) * (0.05 if down[k] else 1))
                        prev = cur
                        out.append(str(x))
                    v = out
                if reset:
                    b0 = int(v[kr])
                    v = v[:kr] + [str(int(x) - b0) for x in v[kr:]]
                put('node_infiniband_port_data_%s_bytes_total' % dirn, lab, tgt, v)
            ld = rng.choice([0, 0, 1, 2])
            put('node_infiniband_link_downed_total', lab, tgt, [SI[ld + x] for x in downs])
            if o['nib'] <= 4 or bad or 'rdmahw' in sets or (fx is None and o['nib'] <= 8 and K < 60):
                pass
            put('node_infiniband_state_id', lab, tgt, ['1' if x else '4' for x in down])
            put('node_infiniband_physical_state_id', lab, tgt, ['2' if x else '5' for x in down])
            rt = [str(int(rate * fx['ib_rate'])) if s > 0.5 else str(rate) for s in S] if bad and fx.get('ib_rate') else [str(rate)] * K
            put('node_infiniband_rate_bytes_per_second', lab, tgt, rt)
            s0 = rng.choice([0, 0, 0, 4])
            put('node_infiniband_symbol_error_total', lab, tgt, counter(rng, [fx['symerr'] * s for s in S], ts, s0, 0.4) if bad and fx.get('symerr') else [SI[s0]] * K)
            if o['fabric'] == 'ib':
                w0 = [2e5 * (c == TRAIN) for c in code]
                if bad and fx.get('wait'):
                    w0 = [w * (1 + 40 * s * (0.3 + fx['lvl'])) for w, s in zip(w0, S)]
                put('node_infiniband_port_transmit_wait_total', lab, tgt, counter(rng, w0, ts, rng.randrange(10 ** 9), 0.3))
            if 'rdmahw' in sets:
                dr = fx['drops'] if bad and fx.get('drops') else 0
                for nm, sh in (('out_of_sequence_packets_received_total', 1), ('packet_sequence_errors_total', 0.6)):
                    put('node_infiniband_' + nm, lab, tgt, counter(rng, [0.02 * (c == TRAIN) + dr * sh * s for s, c in zip(S, code)], ts, rng.randrange(2000), 0.3))
                put('node_infiniband_local_ack_timeout_errors_total', lab, tgt, counter(rng, [(0.01 + (0.3 if o['main'].mode == 'net' else 0)) * (c == TRAIN) + 0.1 * dr * s for s, c in zip(S, code)], ts, rng.randrange(500), 0.3))
                put('node_infiniband_np_cnp_packets_sent_total', lab, tgt, counter(rng, [200.0 * (c == TRAIN) for c in code], ts, rng.randrange(10 ** 8), 0.4))
    if 'timex' in sets:
        dr = o['cast'].get('clock-drift') == m.i
        o0, sl = (rng.uniform(0.2, 5), rng.uniform(-2e-4, 2e-4)) if dr else (0, 0)
        put('node_timex_offset_seconds', L, tgt, ['%.9f' % (o0 + sl * t + 2e-6 * n) for t, n in zip(ts, e)])
        put('node_timex_sync_status', L, tgt, ['0' if dr else '1'] * K)


# --------------------------------------------------------------------------------------------------- writing
def esc(s):
    return s.replace('\\', '\\\\').replace('"', '\\"')


def write_files(rng, d, fmt, store, ms, base, iv, stride, dep):
    byname = {}
    for s in store:
        byname.setdefault(s[0], []).append(s)
    pc = {}
    gz = rng.random() < 0.35

    def save(name, text):
        if gz or len(text) > 12_000_000:
            with open(os.path.join(d, name + '.gz'), 'wb') as fh:
                with gzip.GzipFile(filename='', mode='wb', fileobj=fh, compresslevel=1, mtime=0) as z:
                    z.write(text.encode())
        else:
            with open(os.path.join(d, name), 'w') as fh:
                fh.write(text)

    def num(t):
        s = '%.3f' % t
        return s.rstrip('0').rstrip('.')

    def times(t):
        k = id(t)
        if k not in pc:
            if fmt in ('qr', 'grafana'):
                r = [base + (x + 1) * t.iv for x in t.ks]
                pc[k] = (t, ['[%d,"' % x for x in r], r)
            elif fmt == 'raw':
                pc[k] = (t, ['[%s,"' % num(base + x) for x in t.ts], None)
            elif fmt == 'vm':
                pc[k] = (t, [str(int(round((base + x) * 1000))) for x in t.ts], None)
            elif fmt == 'fed':
                pc[k] = (t, [' %d\n' % round((base + x) * 1000) for x in t.ts], None)
            else:
                pc[k] = (t, [' %s\n' % num(base + x) for x in t.ts], None)
        return pc[k][1]
    if fmt in ('qr', 'raw'):
        one = rng.random() < 0.35
        parts = []
        for name, ss in byname.items():
            res = []
            for _, lab, t, k0, vals in ss:
                p = times(t)
                it = [a + b for a, b in zip(p[k0:k0 + len(vals)], vals)]
                if stride > 1:
                    it = [x for x, k in zip(it, t.ks[k0:k0 + len(vals)]) if k % stride == 0]
                    if not it:
                        continue
                res.append('{"metric":%s,"values":[%s"]]}' % (json.dumps(dict({'__name__': name}, **lab), separators=(',', ':'), sort_keys=True), '"],'.join(it)))
            txt = '{"status":"success","data":{"resultType":"matrix","result":[%s]}}' % ','.join(res)
            if one:
                parts.append(txt)
            else:
                save(name + '.json', txt)
        if one:
            save('responses.json', '\n'.join(parts) + '\n')
        return
    if fmt == 'vm':
        lines = []
        for name, ss in byname.items():
            for _, lab, t, k0, vals in ss:
                p = times(t)
                lines.append('{"metric":%s,"values":[%s],"timestamps":[%s]}' % (json.dumps(dict({'__name__': name}, **lab), separators=(',', ':')), ','.join(vals), ','.join(p[k0:k0 + len(vals)])))
        save('export.jsonl', '\n'.join(lines) + '\n')
        return
    if fmt == 'grafana':
        for name, ss in byname.items():
            cols = []
            allt = set()
            for _, lab, t, k0, vals in ss:
                times(t)
                r = pc[id(t)][2]
                mp = dict(zip(r[k0:k0 + len(vals)], vals))
                allt.update(mp)
                cols.append((name + '{' + ', '.join('%s="%s"' % (k, esc(v)) for k, v in sorted(lab.items())) + '}', mp))
            head = '"Time",' + ','.join('"' + c[0].replace('"', '""') + '"' for c in cols)
            rows = [head]
            for x in sorted(allt):
                rows.append(datetime.datetime.fromtimestamp(x, datetime.timezone.utc).strftime('%Y-%m-%d %H:%M:%S') + ',' + ','.join([c[1].get(x, '') for c in cols]))
            save(name + '.csv', '\n'.join(rows) + '\n')
        return
    # text formats
    out = io.StringIO()
    for name, ss in byname.items():
        if fmt == 'fed':
            out.write('# TYPE %s untyped\n' % name)
        for _, lab, t, k0, vals in ss:
            p = times(t)
            head = name + '{' + ','.join('%s="%s"' % (k, esc(v)) for k, v in sorted(lab.items())) + '} '
            out.write(''.join([head + v + x for v, x in zip(vals, p[k0:k0 + len(vals)])]))
    if fmt != 'fed':
        out.write('# EOF\n')
    txt = out.getvalue()
    if txt and txt != '# EOF\n':
        save('metrics.prom' if fmt == 'fed' else 'openmetrics.txt', txt)
    if fmt == 'smicsv':
        for m in ms:
            if not m.csv:
                continue
            rows = []
            cols = None
            for g, (ts, vs, cut, cols) in sorted(m.csv.items()):
                for k in range(cut):
                    rows.append((ts[k], g, [v[k] for v in vs]))
            rows.sort(key=lambda r: (r[0], r[1]))
            units = [c[2] for c in cols]
            lines = ['timestamp, index, ' + ', '.join(c[1] for c in cols)]
            tcache = {}
            for t, g, v in rows:
                if t not in tcache:
                    dt = datetime.datetime.fromtimestamp(base + t, datetime.timezone.utc)
                    tcache[t] = dt.strftime('%Y/%m/%d %H:%M:%S.') + '%03d' % (dt.microsecond // 1000)
                lines.append(tcache[t] + ', ' + str(g) + ', ' + ', '.join([a + u for a, u in zip(v, units)]))
            with open(os.path.join(d, m.name + '.csv'), 'w') as fh:
                fh.write('\n'.join(lines) + '\n')


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--faulty', type=int, default=100)
    ap.add_argument('--healthy', type=int, default=100)
    ap.add_argument('--out', required=True)
    ap.add_argument('--only', help='only this case (f003, h017)')
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    top = random.Random(a.seed)
    kinds = []
    while len(kinds) < a.faulty:
        ks = KINDS[:]
        top.shuffle(ks)
        kinds += ks
    t0 = time.time()
    total = 0
    todo = [('f%03d' % i, kinds[i]) for i in range(a.faulty)] + [('h%03d' % i, None) for i in range(a.healthy)]
    for case, kind in todo:
        if a.only and case != a.only:
            continue
        t = fleet(random.Random('%d/%s' % (a.seed, case)), case, kind, a.out)
        total += t['samples']
    print('%d fleets, %.1f million samples, %.0f s' % (len(todo) if not a.only else 1, total / 1e6, time.time() - t0))


if __name__ == '__main__':
    main()
