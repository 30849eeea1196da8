/** The keys of an event that somebody needs, recognised by their bytes. */
export const OTHER = 0;
export const PH = 1;
export const CAT = 2;
export const NAME = 3;
export const PID = 4;
export const TID = 5;
export const TS = 6;
export const DUR = 7;
export const ARGS = 8;

export const EXTERNAL_ID = 10;
export const CORRELATION = 11;
export const STREAM = 12;
export const DEVICE = 13;
export const INPUT_DIMS = 15;
export const INPUT_TYPE = 16;
export const COLLECTIVE_NAME = 17;
export const IN_NUMEL = 18;
export const OUT_NUMEL = 19;
export const GROUP_SIZE = 20;
export const DTYPE = 21;
export const GROUP_NAME = 22;
export const GROUP_DESC = 23;
export const GROUP_RANKS = 24;
export const SEQ = 25;
export const SRC_RANK = 26;
export const DST_RANK = 27;

const EVENT_KEYS: readonly (readonly [string, number])[] = [
  ["ph", PH],
  ["cat", CAT],
  ["name", NAME],
  ["pid", PID],
  ["tid", TID],
  ["ts", TS],
  ["dur", DUR],
  ["args", ARGS],
];

/** libkineto/src/output_json.cpp; "external id" and "Process Group ID" are of older releases. */
const ARG_KEYS: readonly (readonly [string, number])[] = [
  ["External id", EXTERNAL_ID],
  ["external id", EXTERNAL_ID],
  ["correlation", CORRELATION],
  ["stream", STREAM],
  ["device", DEVICE],
  ["Input Dims", INPUT_DIMS],
  ["Input dims", INPUT_DIMS],
  ["Input type", INPUT_TYPE],
  ["Collective name", COLLECTIVE_NAME],
  ["In msg nelems", IN_NUMEL],
  ["Out msg nelems", OUT_NUMEL],
  ["Group size", GROUP_SIZE],
  ["dtype", DTYPE],
  ["Process Group Name", GROUP_NAME],
  ["Process Group ID", GROUP_NAME],
  ["Process Group Description", GROUP_DESC],
  ["Process Group Ranks", GROUP_RANKS],
  ["Seq", SEQ],
  ["Src Rank", SRC_RANK],
  ["Dst Rank", DST_RANK],
];

/** Keys that share length and first byte; nearly always one. */
type Candidates = readonly { readonly bytes: Uint8Array; readonly key: number }[];
type KeyTable = readonly (Candidates | undefined)[];

const MAX_KEY_BYTES = 32;

function table(keys: readonly (readonly [string, number])[]): KeyTable {
  const slots: { bytes: Uint8Array; key: number }[][] = [];
  for (let i = 0; i < MAX_KEY_BYTES * 128; i++) slots.push([]);
  for (const [text, key] of keys) {
    const bytes = Buffer.from(text);
    slots[bytes.length * 128 + bytes[0]!]!.push({ bytes, key });
  }
  return slots.map((slot) => (slot.length > 0 ? slot : undefined));
}

export const OF_EVENT: KeyTable = table(EVENT_KEYS);
export const OF_ARGS: KeyTable = table(ARG_KEYS);

export function keyAt(keys: KeyTable, bytes: Uint8Array, at: number, length: number): number {
  if (length === 0 || length >= MAX_KEY_BYTES) return OTHER;
  const candidates = keys[length * 128 + (bytes[at]! & 127)];
  if (!candidates) return OTHER;
  for (let c = 0; c < candidates.length; c++) {
    const known = candidates[c]!.bytes;
    let i = 0;
    while (i < length && known[i] === bytes[at + i]) i++;
    if (i === length) return candidates[c]!.key;
  }
  return OTHER;
}
