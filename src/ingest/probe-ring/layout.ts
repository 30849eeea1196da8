/** The ring's layout, version 1: probe/RING.md in TypeScript, and probe/nccl/ring.h. Little endian. */

export const MAGIC = "FLTRING\0";
export const RING_VERSION = 1;
export const HEADER_BYTES = 4096;
export const RECORD_BYTES = 64;
export const COMMUNICATOR_BYTES = 128;
export const CONNECTION_BYTES = 64;
export const NAME_BYTES = 64;
/** As the probes allocate them. */
export const COMMUNICATOR_CAPACITY = 256;
export const CONNECTION_CAPACITY = 4096;
export const NAME_CAPACITY = 512;
export const WORDS_BYTES = 16_384;

/** Where fields of the header lie. */
export const HEADER = {
  magic: 0,
  version: 8,
  headerBytes: 12,
  recordBytes: 16,
  recordCount: 20,
  recordsOffset: 24,
  commsOffset: 32,
  commCapacity: 36,
  connectionsOffset: 40,
  connectionCapacity: 44,
  namesOffset: 48,
  nameCapacity: 52,
  wordsOffset: 56,
  wordsBytes: 60,
  writer: 64,
  pid: 68,
  rank: 72,
  worldSize: 76,
  localRank: 80,
  gpu: 84,
  startedRealtimeNs: 88,
  startedMonotonicNs: 96,
  anchorRealtimeNs: 104,
  anchorMonotonicNs: 112,
  processStartTicks: 120,
  host: 128,
  job: 192,
  library: 320,
  source: 384,
  head: 512,
  dropped: 576,
  lateUpdates: 584,
  commCount: 640,
  connectionCount: 644,
  nameCount: 648,
  tablesFull: 652,
  heartbeatNs: 704,
  endedHow: 768,
  endedCode: 772,
  endedNs: 776,
  wordsLength: 784,
  phaseSinceNs: 832,
  phase: 840,
  trapUntilNs: 1024,
  trapFromTicket: 1032,
  trappedNow: 1040,
  trappedCalls: 1048,
  stacksWanted: 1056,
  stacksAnswered: 1060,
  profileWanted: 1064,
  profileSteps: 1068,
  validationWanted: 1072,
  profileAnswered: 1076,
  validationAnswered: 1080,
  maskWanted: 1084,
  validation: 1152,
  copiedRealtimeNs: 1536,
  copiedMonotonicNs: 1544,
  processState: 1552,
  waitsIn: 1560,
} as const;

/** Bytes of the header's texts, zero-terminated where shorter. */
export const TEXT_BYTES = {
  host: 64,
  job: 128,
  library: 64,
  source: 32,
  phase: 56,
  validation: 256,
  waitsIn: 64,
} as const;

export const NATIVE_WRITER = 1;
export const PYTHON_WRITER = 2;

/** Where fields of a record lie. */
export const RECORD = {
  stamp: 0,
  kind: 8,
  func: 9,
  dtype: 10,
  flags: 11,
  group: 12,
  channels: 14,
  channelsEnded: 15,
  a: 16,
  b: 24,
  c: 28,
  issuedNs: 32,
  startedNs: 40,
  endedNs: 48,
  d: 56,
  e: 60,
} as const;

/** Where a record of a collective or transfer has its code of the time on the wire: the upper half of d. */
export const WIRE = RECORD.d + 2;

/** Milliseconds that an operator's sends were on the wire, by the record's code; NaN where that is not known. */
export function wireMs(code: number): number {
  return code === 0 ? NaN : ((code & 0xfff) * 2 ** (code >> 12)) / 1000;
}

/** The nearest code of so many milliseconds. */
export function wireCode(ms: number): number {
  let [mantissa, exponent] = [Math.round(ms * 1000), 0];
  while (mantissa > 0xfff && exponent < 0xf) [mantissa, exponent] = [mantissa / 2, exponent + 1];
  return (exponent << 12) | Math.min(0xfff, Math.round(mantissa));
}

/** Kinds of records. */
export const KIND = {
  collective: 1,
  p2p: 2,
  matrix: 3,
  pythonCall: 4,
  collection: 5,
  iteration: 6,
  memory: 7,
  kernel: 8,
} as const;

/** Bits of a record's flags. */
export const FLAG = {
  gpuStart: 1,
  gpuEnd: 2,
  captured: 4,
  held: 8,
  shim: 16,
  untimed: 32,
  failed: 64,
} as const;

/** Where a record has no communicator or name. */
export const NONE = 65_535;

/** Where fields of a communicator lie. */
export const COMMUNICATOR = {
  id: 0,
  rank: 8,
  size: 12,
  nodes: 16,
  flags: 20,
  collectives: 24,
  p2ps: 32,
  madeNs: 40,
  name: 48,
  nameBytes: 72,
} as const;
export const DESTROYED = 1;
export const COMPLETE = 2;

/** Where fields of a connection lie. */
export const CONNECTION = {
  comm: 0,
  channel: 2,
  isSend: 3,
  peer: 4,
  begun: 8,
  finished: 16,
  opsBegun: 24,
  opsFinished: 28,
  bytes: 32,
  states: 40,
  stateCount: 16,
  changedNs: 56,
} as const;

/** NCCL's numbers of data types, as PyTorch names them. */
export const DTYPES = [
  "Char",
  "Byte",
  "Int",
  "UInt32",
  "Long",
  "UInt64",
  "Half",
  "Float",
  "Double",
  "BFloat16",
  "Float8_e4m3fn",
  "Float8_e5m2",
] as const;

/** The flight recorder's names of collectives, by the ring's function. */
export const COLLECTIVES = [
  "collective",
  "all_reduce",
  "all_gather",
  "reduce_scatter",
  "broadcast",
  "reduce",
  "all_to_all",
  "gather",
  "scatter",
] as const;

/** "<job>.r<rank>.<pid>.<writer>.ring" and what lies beside it. */
export const RING_NAME = /\.r(\d{1,7}|x)\.(\d{1,10})\.(native|python)\.ring(?:\.|$)/;
