/** "logs/dmesg.<machine>.log" of every machine: little of importance on most, what broke on one. */
import { machineNs } from "../../../src/simulate/cluster/clocks.ts";
import { hash, STREAM, uniform } from "../../../src/simulate/cluster/noise.ts";
import type { Simulation } from "../../../src/simulate/cluster/times.ts";
import type { Output } from "../../../src/simulate/emit/emitter.ts";
import { kernelStamp } from "../../../src/simulate/emit/logs/stamps.ts";
import { busOf } from "../../../src/simulate/emit/pci.ts";
import type { Moment } from "./moment.ts";
import type { Scenario } from "./scenario.ts";

interface Line {
  readonly ns: bigint;
  readonly text: string;
}

/** `known`: lines that the engine's own faults left, by machine's name. */
export function writeKernelLogs(
  scenario: Scenario,
  simulation: Simulation,
  moment: Moment,
  known: ReadonlyMap<string, string>,
  output: Output,
): void {
  const { spec, topology } = simulation;
  const lost = scenario.lost?.kind === "logs" ? scenario.lost.ranks : [];
  const unread = new Set(lost.map((rank) => topology.machineOf(rank)));
  for (let machine = 0; machine < topology.machines; machine++) {
    if (unread.has(machine)) continue;
    const name = topology.machineName(machine);
    const at = (jobNs: number, text: string): Line => ({
      ns: spec.epochNs + BigInt(Math.round(machineNs(spec, machine, jobNs))),
      text,
    });
    const lines = [
      ...ordinary(spec.seed, machine, moment.stopNs).map(([ns, text]) => at(ns, text)),
      ...storm(scenario, simulation, machine, moment).map(([ns, text]) => at(ns, text)),
      ...ofTruth(scenario, simulation, machine, moment).map(([ns, text]) => at(ns, text)),
    ].map(({ ns, text }) => ({ ns, text: `[${kernelStamp(ns)}] ${text}` }));
    for (const text of known.get(name)?.split("\n") ?? []) {
      const when = Date.parse(`${text.slice(1, 25)} UTC`);
      if (!Number.isNaN(when)) lines.push({ ns: BigInt(when) * 1_000_000n, text });
    }
    if (lines.length === 0) continue;
    lines.sort((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0));
    const file = output.open(`logs/dmesg.${name}.log`);
    file.write(`${lines.map(({ text }) => text).join("\n")}\n`);
    file.end();
  }
}

type Timed = readonly [jobNs: number, text: string];

/** Noise of a healthy kernel: a service, a corrected error, a file server that paused (base rates by judgement). */
function ordinary(seed: number, machine: number, endNs: number): Timed[] {
  const count = hash(seed, machine, 1, 0xd3) % 5;
  return Array.from({ length: count }, (_, n): Timed[] => {
    const atNs = endNs * uniform(seed, machine, n, 0xd4);
    switch (hash(seed, machine, n, 0xd5) % 5) {
      case 0:
        return [
          [
            atNs,
            "systemd[1]: Starting fwupd-refresh.service - Refresh fwupd metadata and update motd...",
          ],
        ];
      case 1:
        return [[atNs, correctedMemory(seed, n)]];
      case 2:
        return [[atNs, correctedPcie(hash(seed, machine, n, 0xd6) % 8)]];
      case 3:
        return [
          [atNs, "nfs: server filer03 not responding, still trying"],
          [atNs + 2e9, "nfs: server filer03 OK"],
        ];
      default:
        return [
          [
            atNs,
            "perf: interrupt took too long (2523 > 2500), lowering kernel.perf_event_max_sample_rate to 79000",
          ],
        ];
    }
  }).flat();
}

function storm(
  { storm: drawn }: Scenario,
  { spec, topology }: Simulation,
  machine: number,
  { stopNs, iteration }: Moment,
): Timed[] {
  if (drawn?.kind !== "corrected-memory" && drawn?.kind !== "corrected-pcie") return [];
  if (!drawn.ranks.some((rank) => topology.machineOf(rank) === machine)) return [];
  const perIterationNs = stopNs / iteration;
  const until = Math.min(drawn.to, iteration);
  const count = Math.min(400, Math.ceil(drawn.rate * Math.max(1, until - drawn.from)));
  return Array.from({ length: count }, (_, n): Timed => {
    const at =
      Math.min(drawn.from, iteration - 1) +
      uniform(spec.seed, machine, n, 0xd7) * Math.max(1, until - drawn.from);
    return [
      at * perIterationNs,
      drawn.kind === "corrected-memory" ? correctedMemory(spec.seed, n) : correctedPcie(n % 8),
    ];
  });
}

function correctedMemory(seed: number, n: number): string {
  const bank = hash(seed, n, 2, 0xd8) % 8;
  return `EDAC skx MC${bank % 4}: 1 CE memory read error on CPU_SrcID#${bank % 2}_MC#${bank % 4}_Chan#0_DIMM#0 (channel:0 slot:0 page:0x${hash(seed, n, 3, 0xd8).toString(16)} offset:0x0 grain:32 syndrome:0x0)`;
}

function correctedPcie(gpu: number): string {
  return `pcieport 0000:${busOf(gpu)}:00.0: AER: Corrected error message received from 0000:${busOf(gpu)}:00.0`;
}

/** What the kernel says of faults that the engine knows only as a process that is gone or does not go on. */
function ofTruth(
  { family, truths }: Scenario,
  { spec, topology }: Simulation,
  machine: number,
  moment: Moment,
): Timed[] {
  const [truth] = truths;
  const rank = truth?.ranks[0];
  if (rank === undefined || topology.machineOf(rank) !== machine) return [];
  const pid = pidOf(spec.seed, machine) + topology.gpuOf(rank);
  const atNs = moment.lastIssueNs(rank) + 1e7;
  if (family === "host-memory") {
    const kb = 180_000_000 + (hash(spec.seed, rank, 4, 0xd9) % 90_000_000);
    return [
      [
        atNs,
        "python invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
      ],
      [
        atNs + 1e6,
        `Out of memory: Killed process ${pid} (python) total-vm:${3 * kb}kB, anon-rss:${kb}kB, file-rss:81220kB, shmem-rss:1048kB, UID:1000 pgtables:412200kB oom_score_adj:0`,
      ],
    ];
  }
  if (family === "storage-hang") {
    // kernel.hung_task_timeout_secs: a process in uninterruptible sleep is told after two minutes.
    return [
      ...(uniform(spec.seed, rank, 5, 0xd9) < 0.6
        ? [[atNs + 9e9, "nfs: server filer01 not responding, still trying"] as Timed]
        : []),
      [atNs + 131e9, `INFO: task python:${pid} blocked for more than 120 seconds.`],
    ];
  }
  return [];
}

/** Of a machine's first rank, as the logs have it (emit/logs/rank-file.ts). */
export function pidOf(seed: number, machine: number): number {
  return 2000 + (hash(seed ^ STREAM.logs, machine, 0, 0) % 60_000);
}
