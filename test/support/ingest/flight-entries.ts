/** Entries as PyTorch writes them, for tests: shorthand for the fields that a test is not about. */
export type Fields = Record<string, unknown>;

const PP = ["71994ac1b1b448fde31999fe98c557bcb07a31a5", "mesh_pp"];
const DP = ["6670b8dfc692287f3d536a21a2fd2b646f4d4b2f", "mesh_dp"];

/** A send or receive of the group of four that a pipeline is; `state` is that of PyTorch's record. */
export function transfer(name: string, p2pSeq: number, fields: Fields = {}): Fields {
  return {
    record_id: 0,
    pg_id: 1,
    process_group: PP,
    profiling_name: `nccl:${name}`,
    collective_seq_id: 0,
    p2p_seq_id: p2pSeq,
    input_sizes: [[128, 256]],
    output_sizes: [[128, 256]],
    state: "scheduled",
    retired: false,
    is_p2p: true,
    time_created_ns: 1_000_000 * p2pSeq,
    ...fields,
  };
}

export const completed = (atNs: number, durationMs?: number): Fields => ({
  state: "completed",
  retired: true,
  time_discovered_started_ns: atNs,
  time_discovered_completed_ns: atNs,
  ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
});

/** What closes a batch: it does not call itself P2P. */
export function closing(p2pSeq: number, fields: Fields = {}): Fields {
  const none = { input_sizes: [], output_sizes: [], is_p2p: false };
  return transfer("coalesced", p2pSeq, { ...none, ...fields });
}

export function collective(name: string, seq: number, fields: Fields = {}): Fields {
  return transfer(name, 0, {
    pg_id: 2,
    process_group: DP,
    collective_seq_id: seq,
    is_p2p: false,
    time_created_ns: 1_000_000 * seq,
    ...fields,
  });
}

export const counters = (enqueued: number, started: number, done: number): Fields => ({
  last_enqueued_collective: enqueued,
  last_started_collective: started,
  last_completed_collective: done,
});

interface Members {
  readonly pp?: string;
  readonly dp?: string;
}

/** A dump in JSON; unless told otherwise ranks 0, 2, 4, 6 are a pipeline, and 0 and 1 share a stage. */
export function dumpBytes(
  entries: readonly Fields[],
  status: Fields = {},
  { pp = "[0, 2, 4, 6]", dp = "[0, 1]" }: Members = {},
): Buffer {
  const group = ([name]: string[], ranks: string): [string, Fields] => [
    name!,
    { name, desc: "", ranks },
  ];
  const config = Object.fromEntries([group(PP, pp), group(DP, dp)]);
  const numbered = entries.map((entry, id) => ({ ...entry, record_id: entry["record_id"] || id }));
  return Buffer.from(
    JSON.stringify({ version: "2.10", pg_config: config, pg_status: status, entries: numbered }),
  );
}
