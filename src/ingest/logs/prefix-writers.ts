/** Who wrote a line: launchers' labels, NCCL's process, syslog's host and program (see rank-log/prefixes.ts). */
import type { LinePrefix } from "./line-prefix.ts";
import { levelOf } from "./prefix-levels.ts";
import { matchAt, sticky } from "./prefix-stamps.ts";

const HOST = String.raw`[A-Za-z0-9.][A-Za-z0-9.-]{0,80}`;
const SOURCE = String.raw`\.(?:py|pyx|cc|cpp|cxx|cu|cuh|c|h|hpp|go|rs|java|scala|js|ts)`;
const RANK = sticky(String.raw`\[rank *[:=]? *(\d{1,7})\](?::|(?= |\[|$))`);
const NCCL = sticky(
  String.raw`(?=[^:]*[A-Za-z-])(${HOST}):(\d{1,10}):(\d{1,10})(?: \[\d{0,4}\])?(?: (?:\S{1,80}:\d{1,6} )?NCCL (INFO|WARN|ERROR|TRACE|ABORT)(?= |$)|(?= ))`,
);
/** "host:pid:tid [0] NCCL INFO" with a time behind the process. */
const NCCL_LEVEL = sticky(
  String.raw`(?:\[\d{0,4}\] )?(?:\S{1,80}:\d{1,6} )?NCCL (INFO|WARN|ERROR|TRACE|ABORT)(?= |$)`,
);
const MPI = sticky(String.raw`\[\d{1,6},(\d{1,6})\]<std(?:out|err|diag)>:?`);
const ROLE = sticky(String.raw`\[([A-Za-z_][A-Za-z_-]{1,30}\d{1,6})\]:`);
const HOST_TAG = sticky(String.raw`\[(([A-Za-z][\w.-]{0,60}):\d{1,6})\]:?`);
const RAY = sticky(String.raw`\(([^()]{0,120}?)pid=(\d{1,10})([^()]{0,80})\)`);
const RAY_RANK = /\[?rank=(\d{1,6})/;
const RAY_IP = /ip=([\w.:-]+)/;
/** srun --label pads to the width of the last task. */
const TASK = sticky(String.raw`( {0,3})(\d{1,6}):(?= |$)`);
const POD = sticky(String.raw`\[pod/([a-z0-9.-]{1,253})/([a-z0-9.-]{1,63})\]`);
/** Stern and docker compose: only a controller's hash or a bar shows that this is no text. */
const HASHED_POD = sticky(
  String.raw`([a-z0-9][a-z0-9.-]{0,200}-[a-z0-9]{6,10}-[a-z0-9]{5}) ([a-z0-9][a-z0-9-]{0,62})(?= )`,
);
const COMPOSE = sticky(String.raw`([a-z0-9][\w.-]{0,80}[-_]\d{1,4}) +\|(?= |$)`);
/** pdsh, clush. No underline, so that devices such as mlx5_0 are none. */
const NODE = sticky(
  String.raw`([a-z][a-z-]{0,30}\d[a-z0-9-]{0,40}(?:\.[a-z0-9.-]{1,80})?|[a-z][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,40}){2,6}):(?= |$)`,
);
/** Names with a number that are devices or counters. "gpu7" is one, "gpu-223" a machine. */
const NOT_NODE =
  /^(?:[a-z]\d{1,2}$|gpu-?\d{1,2}$|(?:eth|ib|en[opsx]|mlx|wlan|bond|veth|cuda|nvidia|nvme|npu|hca|rank|step|epoch|layer|block|stage|iter|iteration|batch|device|dev|port|line|part|shard|cpu|numa|sd|loop|dm|md|irq|pcie?|fold|seed|run|task|thread|test|version|try|attempt|exp|model|head|top|level|chunk|file|page|item|group|ring|channel|tree)-?\d|.*\.(?:py|sh|cc?|cpp|cu|h|json|ya?ml|txt|log|so|out|go|rs)$)/;

/** A label that a launcher puts at the very head of a line; where it ends, or -1. */
export function labelAt(line: string, at: number, out: LinePrefix): number {
  const c = line.charCodeAt(at);
  if (c === 91) return bracketLabelAt(line, at, out); // [
  if (c === 40) return rayAt(line, at, out); // (
  let m = at === 0 || isLabelEnd(line, at) ? matchAt(TASK, line, at) : null;
  if (m) return writer(out, at + m[1]!.length, m[2]!.length, at + m[0].length);
  m = matchAt(HASHED_POD, line, at) ?? matchAt(COMPOSE, line, at);
  if (m) return host(out, at, m[1]!.length, at + m[0].length);
  m = at === 0 ? matchAt(NODE, line, at) : null;
  if (m && !NOT_NODE.test(m[1]!)) return host(out, at, m[1]!.length, at + m[0].length);
  return -1;
}

/** NCCL's own head, wherever in the prefix. */
export function ncclAt(line: string, at: number, out: LinePrefix): number {
  const m = matchAt(NCCL, line, at);
  if (m) {
    const [, name, pid, , level] = m;
    host(out, at, name!.length, 0);
    writer(out, at + name!.length + 1, pid!.length, 0);
    if (level !== undefined) out.level = ncclLevel(level);
    return at + m[0].length;
  }
  const late = out.writerFrom >= 0 ? matchAt(NCCL_LEVEL, line, at) : null;
  if (!late) return -1;
  out.level = ncclLevel(late[1]!);
  return at + late[0].length;
}

/** "[rank3]:", also behind other fields. */
export function rankAt(line: string, at: number, out: LinePrefix): number {
  const m = matchAt(RANK, line, at);
  if (!m) return -1;
  const from = at + m[0].indexOf(m[1]!);
  out.rankFrom = from;
  out.rankTo = from + m[1]!.length;
  return at + m[0].length;
}

export function host(out: LinePrefix, from: number, length: number, end: number): number {
  if (out.hostFrom < 0) {
    out.hostFrom = from;
    out.hostTo = from + length;
  }
  return end;
}

export function writer(out: LinePrefix, from: number, length: number, end: number): number {
  if (out.writerFrom < 0) {
    out.writerFrom = from;
    out.writerTo = from + length;
  }
  return end;
}

function bracketLabelAt(line: string, at: number, out: LinePrefix): number {
  const rank = rankAt(line, at, out);
  if (rank >= 0) return rank;
  let m = matchAt(MPI, line, at);
  if (m) {
    out.rankFrom = at + m[0].indexOf(",") + 1;
    out.rankTo = out.rankFrom + m[1]!.length;
    return at + m[0].length;
  }
  m = matchAt(ROLE, line, at) ?? null;
  if (m) return writer(out, at + 1, m[1]!.length, at + m[0].length);
  m = matchAt(POD, line, at);
  if (m) return host(out, at + 5, m[1]!.length, at + m[0].length);
  m = matchAt(HOST_TAG, line, at);
  if (!m || new RegExp(`${SOURCE}$`).test(m[2]!) || levelOf(m[2]!) !== null) return -1;
  host(out, at + 1, m[2]!.length, 0);
  return writer(out, at + 1, m[1]!.length, at + m[0].length);
}

function rayAt(line: string, at: number, out: LinePrefix): number {
  const m = matchAt(RAY, line, at);
  if (!m) return -1;
  const pidAt = at + m[0].lastIndexOf("pid=") + 4;
  writer(out, pidAt, m[2]!.length, 0);
  const rank = RAY_RANK.exec(m[0]);
  if (rank) {
    out.rankFrom = at + rank.index + rank[0].length - rank[1]!.length;
    out.rankTo = out.rankFrom + rank[1]!.length;
  }
  const ip = RAY_IP.exec(m[0]);
  if (ip) host(out, at + ip.index + 3, ip[1]!.length, 0);
  return at + m[0].length;
}

/** Labels follow each other: "3: [rank3]:", "node3: 3: ". */
function isLabelEnd(line: string, at: number): boolean {
  return line.startsWith(": ", at - 2) || line.startsWith("]", at - 1);
}

function ncclLevel(word: string): LinePrefix["level"] {
  return word === "ABORT" ? "error" : levelOf(word);
}
