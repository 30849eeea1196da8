/**
 * Which rank a line of a kernel's log is about. NVIDIA's driver prints the process and the PCI address of a GPU that
 * failed, the out-of-memory killer the process that it ended; NCCL's lines, probes, stacks and torchrun's report say
 * which rank runs as that process or on that GPU.
 */
import { groupBy } from "../base/group-by.ts";
import type { Rank } from "../model/ids.ts";
import type { RankInfo } from "../model/job.ts";
import { isLogOf } from "../model/kernel-line.ts";
import type { LogFailure, NcclProcess } from "../model/log.ts";

/** "NVRM: Xid (PCI:0000:1b:00): 62, pid=27246, name=python"; older drivers quote the id. "Killed process 27246 (python)". */
const PID =
  /\bNVRM: .*\bpid='?(\d{1,9})|\bKilled process (\d{1,9})\b|\boom-kill:.*\bpid=(\d{1,9})\b/;
const OOM_KILLER = /\bKilled process \d|\boom-kill:/;
/** PyTorch's loader workers belong to a rank, which does not say which processes they are. */
const LOADER = /\(pt_data_|\btask=pt_data_/;
const PCI = /\bNVRM: Xid \(PCI:([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})/i;

/**
 * Failures that name no rank get the one that they are about, where exactly one fits. What the out-of-memory killer did to a
 * process of others on a machine whose ranks' processes are all known is no failure of this job.
 */
export function withKernelRanks(
  failures: readonly LogFailure[],
  ranks: Iterable<RankInfo>,
  processes: ReadonlyMap<Rank, NcclProcess>,
): LogFailure[] {
  const known = [...ranks].filter(({ machine }) => machine !== null);
  const byPid = groupBy(known, ({ pid }) => pid);
  const byBus = groupBy(known, ({ rank }) => busOf(processes.get(rank)?.busId));
  return failures.flatMap((failure) => {
    if (failure.rank !== null) return failure;
    const [, ...pids] = PID.exec(failure.text) ?? [];
    const pid = pids.find((one) => one !== undefined);
    const pci = PCI.exec(failure.text);
    const fit = (list: readonly RankInfo[] = []): RankInfo[] =>
      list.filter(({ machine }) => isLogOf(failure, machine!));
    const named = pid === undefined ? [] : fit(byPid.get(Number(pid)));
    const found = named.length > 0 || !pci ? named : fit(byBus.get(busOf(pciNumber(pci))));
    if (found.length === 1) return { ...failure, rank: found[0]!.rank };
    const mayBeOthers = OOM_KILLER.test(failure.text) && !LOADER.test(failure.text);
    const here = mayBeOthers && pid !== undefined ? fit(known) : [];
    return here.length > 0 && here.every((one) => one.pid !== null) ? [] : failure;
  });
}

/** NCCL prints "0000:1b:00.0" as one hexadecimal number without leading zeros, "1b000". */
function pciNumber([, domain = "", bus = "", device = ""]: readonly string[]): string {
  return `${domain}${bus}${device}0`;
}

function busOf(hex: string | undefined): string | null {
  return hex === undefined ? null : hex.toLowerCase().replace(/^0+/, "");
}
