/**
 * What PyTorch's watchdog prints, to the letter of the lab's recordings hang3 and oom2 (PyTorch 2.10,
 * torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
 */
import type { Simulation } from "../../cluster/times.ts";
import {
  ALL_GATHER,
  ALL_REDUCE,
  ALL_TO_ALL,
  BACKWARD,
  EMBEDDING,
  EP,
  GRADIENTS,
  OPTIMIZER,
  RECV,
  REDUCE_SCATTER,
  SEND,
  WORLD,
  type StageProgram,
} from "../../cluster/program.ts";
import { callStack } from "../../flight/call-stacks.ts";
import { shapeOf, type Kind, type Site } from "../../flight/op.ts";
import type { Pending } from "./frontier.ts";
import type { Membership } from "./memberships.ts";
import { SITE, type RankFile } from "./rank-file.ts";
import { NCCL_VERSION, TIMEOUT_MS } from "./startup.ts";

const OP_TYPES: Readonly<Record<number, string>> = {
  [ALL_GATHER]: "_ALLGATHER_BASE",
  [REDUCE_SCATTER]: "_REDUCE_SCATTER_BASE",
  [ALL_REDUCE]: "ALLREDUCE",
  [ALL_TO_ALL]: "ALLTOALL_BASE",
  [SEND]: "SEND",
  [RECV]: "RECV",
};

const KINDS: Readonly<Record<number, Kind>> = {
  [ALL_GATHER]: "_all_gather_base",
  [REDUCE_SCATTER]: "_reduce_scatter_base",
  [ALL_REDUCE]: "all_reduce",
  [ALL_TO_ALL]: "all_to_all",
  [SEND]: "send",
  [RECV]: "recv",
};

/** Where in the script an operator is called. */
function siteOf({ role, kind, phase }: StageProgram, op: number): Site {
  if (kind[op] === SEND) return "send";
  if (kind[op] === RECV) return "recv";
  if (role[op] === EMBEDDING) return "embedding";
  if (role[op] === WORLD) return "norm";
  if (phase[op] === GRADIENTS) return "gradients";
  if (phase[op] === OPTIMIZER) return "parameters";
  const backward = phase[op] === BACKWARD;
  if (role[op] === EP) return backward ? "experts-backward" : "experts-forward";
  return backward ? "backward" : "forward";
}

/** "WorkNCCL(SeqNum=241, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000)". */
function workText(
  { programs, lanes }: Simulation,
  rank: number,
  { op, seq, role }: Pending,
  size: number,
): string {
  const program = programs[Math.floor(rank / lanes.lanes)]!;
  const kind = program.kind[op]!;
  // Gradient norms are reduced as float32, everything else as bfloat16.
  const elements = Math.max(1, Math.round(program.bytes[op]! / (role === WORLD ? 4 : 2)));
  const numelIn = kind === REDUCE_SCATTER ? elements * size : elements;
  const numelOut = kind === ALL_GATHER ? elements * size : elements;
  return `WorkNCCL(SeqNum=${seq}, OpType=${OP_TYPES[kind]}, NumelIn=${numelIn}, NumelOut=${numelOut}, Timeout(ms)=${TIMEOUT_MS})`;
}

/** An operator that a group's watchdog gives up. */
interface Failed {
  readonly membership: Membership;
  readonly pending: Pending;
  readonly atNs: number;
  /** Whether the rank's call for dumps is this group's. */
  readonly isFirst: boolean;
}

/** The two lines of a timeout, the stack of the operator and the call to the other ranks. */
export function writeTimeout(simulation: Simulation, file: RankFile, failed: Failed): string {
  const { membership, pending, atNs } = failed;
  const work = workText(simulation, file.rank, pending, membership.group.ranks.length);
  const ran = Math.round((atNs - pending.issuedNs) / 1e6);
  const message = `[Rank ${membership.groupRank}] Watchdog caught collective operation timeout: ${work} ran for ${ran} milliseconds before timing out.`;
  file.c10d(atNs, "E", "ProcessGroupNCCL.cpp:689", message);
  writeFailure(simulation, file, failed, atNs + 1.7e5);
  return message;
}

/** What a rank prints whose peer closed the connection. */
export function writeRemoteError(
  simulation: Simulation,
  file: RankFile,
  failed: Failed,
  peer: string,
): string {
  const { membership, pending, atNs } = failed;
  const closed = `socketProgress: Connection closed by remote peer ${peer}`;
  file.ncclWarn(atNs - 4e5, "misc/socket.cc:79", closed);
  const work = workText(simulation, file.rank, pending, membership.group.ranks.length);
  const error = `NCCL error: remote process exited or there was a network error, NCCL version ${NCCL_VERSION}`;
  file.c10d(
    atNs,
    "E",
    "ProcessGroupNCCL.cpp:612",
    `[Rank ${membership.groupRank}] Collective ${work} raised the following async exception: ${error}`,
  );
  const detail = [
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    "Last error:",
    closed,
    "Exception raised from checkForNCCLErrorsInternal at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2770 (most recent call first):",
  ];
  for (const line of detail) file.plain(line);
  file.plain(
    `frame #0: c10::Error::Error(c10::SourceLocation, std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >) + 0x9d (0x7f283f37305d in ${SITE}/torch/lib/libc10.so)`,
  );
  file.plain(
    `frame #1: c10d::ProcessGroupNCCL::checkForNCCLErrorsInternal(std::shared_ptr<c10d::NCCLComm>&) + 0x380 (0x7f278acfb160 in ${SITE}/torch/lib/libtorch_cuda.so)`,
  );
  file.plain("");
  writeFailure(simulation, file, failed, atNs + 1.4e6);
  return error;
}

function writeFailure(
  { programs, lanes }: Simulation,
  file: RankFile,
  { membership: { tag }, pending: { op, seq, enqueued, completed }, isFirst }: Failed,
  atNs: number,
): void {
  file.c10d(
    atNs,
    "E",
    "ProcessGroupNCCL.cpp:2303",
    `${tag}  failure detected by watchdog at work sequence id: ${seq} PG status: last enqueued work: ${enqueued}, last completed work: ${completed}`,
  );
  file.c10d(atNs + 3e5, "E", "ProcessGroupNCCL.cpp:733", "Stack trace of the failed collective: ");
  const program = programs[Math.floor(file.rank / lanes.lanes)]!;
  const frames = callStack({
    group: 0,
    kind: KINDS[program.kind[op]!]!,
    peer: -1,
    shape: shapeOf([1]),
    dtype: "BFloat16",
    async: false,
    hostWait: 0,
    gapNs: 0,
    iteration: 0,
    site: siteOf(program, op),
  });
  frames.forEach((frame, i) => file.plain(`#${i} ${frame.func} from ${frame.file}:${frame.line}`));
  file.plain("");
  file.c10d(
    atNs + 4e5,
    "I",
    "ProcessGroupNCCL.cpp:2623",
    `${tag} Broadcasting signal exception_dump to other ranks via TCPStore.`,
  );
  if (!isFirst) return;
  file.c10d(
    atNs + 4.1e5,
    "E",
    "ProcessGroupNCCL.cpp:2636",
    `${tag} First PG on this rank to signal dumping.`,
  );
}

/** `from`: the rank that called for the dump. */
export function writeDump(
  file: RankFile,
  world: Membership,
  counters: { readonly enqueued: number; readonly completed: number },
  from: number,
  atNs: number,
): void {
  const { tag } = world;
  const line = (afterNs: number, level: string, source: string, text: string): void =>
    file.c10d(atNs + afterNs, level, source, text);
  const own = from === file.rank;
  if (!own) {
    line(
      0,
      "E",
      "ProcessGroupNCCL.cpp:1849",
      `${tag} Observed flight recorder dump signal from another rank via TCPStore.`,
    );
  }
  line(
    1.2e5,
    "E",
    "ProcessGroupNCCL.cpp:1914",
    `${tag} Received a dump signal due to a collective timeout from ${own ? "this local rank" : ` rank ${from}`} and we will try our best to dump the debug info. Last enqueued NCCL work: ${counters.enqueued}, last completed NCCL work: ${counters.completed}.This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks, the order of collectives is not same for all ranks or the scheduled collective, for some reason, didn't run. Additionally, this can be caused by GIL deadlock or other reasons such as network errors or bugs in the communications library (e.g. NCCL), etc. `,
  );
  line(
    3.8e5,
    "E",
    "ProcessGroupNCCL.cpp:1628",
    `${tag} ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1, only active collectives: 0`,
  );
  const path = `/srv/job/flight-recorder/nccl_trace_rank_${file.rank}`;
  line(
    1.6e7,
    "I",
    "ProcessGroupNCCL.cpp:1641",
    `${tag} ProcessGroupNCCL dumping nccl trace to ${path}`,
  );
  line(
    1.7e7,
    "I",
    "FlightRecorder.cpp:40",
    `Finished writing Flight Recorder debug info to ${path}`,
  );
  line(
    1.71e7,
    "I",
    "ProcessGroupNCCL.cpp:1644",
    `${tag} Flight Recorder trace successfully dumped.`,
  );
}

/** TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC's default: how long a process waits before it ends itself. */
const HEARTBEAT_S = 480;

export function writeTermination(file: RankFile, world: Membership, dumpNs: number): void {
  const { tag } = world;
  const atNs = dumpNs + HEARTBEAT_S * 1e9;
  file.c10d(
    atNs,
    "I",
    "ProcessGroupNCCL.cpp:2014",
    `${tag} slept for ${HEARTBEAT_S} because we want to wait longer to verify there is indeed a watchdog hang.`,
  );
  file.c10d(
    atNs + 5e4,
    "F",
    "ProcessGroupNCCL.cpp:1653",
    `${tag} ${tag} Terminating the process after attempting to dump debug info, due to collective timeout or exception.`,
  );
}

/** The exception that ended the group's watchdog, as std::terminate() prints it. */
export function writeBackendError(file: RankFile, membership: Membership, message: string): void {
  file.plain("terminate called after throwing an instance of 'c10::DistBackendError'");
  file.plain(
    `  what():  ${membership.tag} Process group watchdog thread terminated with exception: ${message}`,
  );
}
