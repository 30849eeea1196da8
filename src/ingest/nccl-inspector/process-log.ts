/** What one process wrote: its communicators, and its operators over all of them. */
import { MAX_RANKS } from "../../model/ids.ts";
import { COMPLETED, type DumpGroup, type OperatorLog } from "../../model/operators.ts";
import { emptyRow, GrowingColumns } from "../operators-file/growing-columns.ts";
import { fieldsOf, type Fields } from "../../base/json.ts";
import { amount, operatorName, readTimes, text } from "./record.ts";

interface Communicator {
  readonly name: string;
  readonly desc: string;
  readonly rank: number;
  readonly ranks: number;
}

const MAX_COMMUNICATORS = 65_536;
const MAX_TEXT = 256;

export class ProcessLog {
  readonly host: string;
  readonly pid: number | null;
  readonly #communicators: Communicator[] = [];
  readonly #byKey = new Map<string, number>();
  readonly #columns = new GrowingColumns();
  readonly #row = { ...emptyRow(), state: COMPLETED };
  readonly #times = { createdUs: NaN, startedUs: NaN, completedUs: NaN };
  readonly #dumpUs: number;

  constructor(host: string, pid: number | null, dumpUs: number) {
    this.host = host;
    this.pid = pid;
    this.#dumpUs = dumpUs;
  }

  get count(): number {
    return this.#columns.count;
  }

  /** The number of the communicator that a header names; -1 where it names none. */
  communicator(header: Fields): number {
    const name = text(header["id"]).slice(0, MAX_TEXT);
    const rank = amount(header["rank"], -1);
    if (name === "" || !Number.isInteger(rank) || rank >= MAX_RANKS) return -1;
    // A process with several GPUs has several ranks of one communicator.
    const key = `${rank} ${name}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#communicators.length >= MAX_COMMUNICATORS) return -1;
    const commName = text(header["comm_name"]).slice(0, MAX_TEXT);
    this.#byKey.set(key, this.#communicators.length);
    this.#communicators.push({
      name,
      // What the writer puts where the communicator has no name.
      desc: commName === "unknown" ? "" : commName,
      rank,
      ranks: amount(header["n_ranks"], 0),
    });
    return this.#communicators.length - 1;
  }

  /** False where it is not an operator. NCCL 2.28.9 still writes Send and Recv as coll_perf, without peer. */
  collective(group: number, perf: Fields): boolean {
    const func = text(perf["coll"]);
    if (func === "") return false;
    const isP2p = func === "Send" || func === "Recv";
    const name = operatorName(func);
    this.#add(group, this.#columns.name(name, "unknown"), perf, {
      isP2p,
      isSend: func === "Send",
      peer: -1,
      // NCCL counts each kind of collective on its own in a communicator, from 0; what is smaller than
      // NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES is counted and not written, so gaps are normal.
      sn: amount(perf["coll_sn"], 0),
      bytes: amount(perf["coll_msg_size_bytes"], NaN),
      us: amount(perf["coll_exec_time_us"], NaN),
    });
    return true;
  }

  p2p(group: number, perf: Fields): boolean {
    const func = text(perf["p2p"]);
    if (func === "") return false;
    const isSend = func === "Send";
    const given = amount(perf["p2p_peer"], -1);
    const peer = Number.isInteger(given) && given < MAX_RANKS ? given : -1;
    const kind = operatorName(func);
    const ends = `${this.#communicators[group]!.rank}${isSend ? "->" : "<-"}${peer}`;
    this.#add(group, this.#columns.name(peer < 0 ? kind : `${kind} ${ends}`, kind), perf, {
      isP2p: true,
      isSend,
      peer,
      sn: amount(perf["p2p_sn"], 0),
      bytes: amount(perf["p2p_msg_size_bytes"], NaN),
      us: amount(perf["p2p_exec_time_us"], NaN),
    });
    return true;
  }

  #add(
    group: number,
    name: number,
    perf: Fields,
    op: { isP2p: boolean; isSend: boolean; peer: number; sn: number; bytes: number; us: number },
  ): void {
    const row = this.#row;
    const times = this.#times;
    readTimes(fieldsOf(perf["event_trace_ts"]), times);
    row.group = group;
    row.name = name;
    row.seq = op.isP2p ? 0 : op.sn;
    row.p2pSeq = op.isP2p ? op.sn : 0;
    row.isP2p = op.isP2p;
    row.isSend = op.isSend;
    row.peer = op.peer;
    // Microseconds until the epoch is known: these are below 2^53, nanoseconds since 1970 are not.
    row.createdNs = times.createdUs;
    row.startedNs = times.startedUs;
    row.completedNs = times.completedUs;
    row.durationMs = op.us / 1000;
    // Bytes, not elements: the file has the product of count and element size only.
    row.inputNumel = op.bytes;
    this.#columns.add(row);
  }

  /** Dumps follow one another by communicator; where times tell, operators are put in the order of issue. */
  build(file: string, format: string): OperatorLog {
    const groups = this.#communicators.map(({ name, desc }): DumpGroup => {
      return { name, desc, ranks: null, enqueued: -1, started: -1, completed: -1 };
    });
    const ops = this.#columns.build(true);
    const columns = [ops.createdNs, ops.startedNs, ops.completedNs];
    let epochUs = Infinity;
    for (const us of ops.createdNs) if (us < epochUs) epochUs = us;
    if (epochUs === Infinity) epochUs = this.#dumpUs;
    for (const column of columns) {
      for (let i = 0; i < column.length; i++) column[i] = (column[i]! - epochUs) * 1000;
    }
    return {
      file,
      format,
      rank: this.#rank(),
      host: this.host,
      pid: this.pid,
      groups,
      ops,
      epochNs: BigInt(Math.trunc(epochUs)) * 1000n,
      // Each kind of collective counts on its own, and small ones are missing.
      hasSequence: false,
    };
  }

  /** Ranks are the communicator's; the job's is known from one that is larger than all others, at best. */
  #rank(): number | null {
    const most = this.#communicators.reduce((size, { ranks }) => Math.max(size, ranks), 0);
    const largest = this.#communicators.filter(({ ranks }) => ranks === most);
    return largest.length === 1 ? largest[0]!.rank : null;
  }
}
