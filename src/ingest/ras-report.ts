/** Puts the blocks of NCCL's textual RAS report together: a communicator may appear in several of them. */
import { getOrInsert } from "../base/group-by.ts";
import type { RasCommunicator, RasMissing, RasProcess, RasReport } from "../model/ras.ts";

export interface RasBlock {
  /** "INCOMPLETE", "DEAD", "ERROR", "MISMATCH", "TIMEOUT" */
  readonly kind: string;
  /** Null for the blocks about the whole job. */
  readonly comm: RasTextComm | null;
}

interface Topic {
  readonly launched?: number;
  readonly status?: string;
}

/** Ranks beyond this are what broken reports print (nccl issue 1762). */
const MAX_RANK = 1_000_000;

/** Hashes as the text prints them: 16 hexadecimal digits, also for the JSON form and the debug log. */
export function commHash(hash: string): string {
  return hash.replace(/^0x/i, "").toLowerCase().padStart(16, "0");
}

class RasTextComm {
  readonly group: number;
  readonly hash: string;
  readonly line: number;
  readonly missing: RasProcess[] = [];
  readonly left: RasProcess[] = [];
  readonly counts: (RasProcess & { collective: string; launched: number })[] = [];
  #collective = "";
  #topic: Topic = {};
  /** Launch counts that were given for several ranks at once, with how many of them were then listed. */
  readonly #bulk: { collective: string; launched: number; ranks: number; listed: number }[] = [];

  constructor(group: number, hash: string, line: number) {
    this.group = group;
    this.hash = commHash(hash);
    this.line = line;
  }

  collective(name: string): void {
    this.#collective = name;
    this.#topic = {};
  }

  topic(topic: Topic, ranks: number): void {
    this.#topic = topic;
    const { launched } = topic;
    if (launched === undefined || ranks < 2) return;
    this.#bulk.push({ collective: this.#collective, launched, ranks, listed: 0 });
  }

  listed(kind: string, process: RasProcess): void {
    if (process.commRank > MAX_RANK) return;
    const { launched, status } = this.#topic;
    if (kind === "INCOMPLETE") this.missing.push(process);
    else if (kind === "ERROR") return;
    else if (status === "NOCOMM") this.left.push(process);
    else if (launched !== undefined) {
      this.counts.push({ ...process, collective: this.#collective, launched });
      const bulk = this.#bulk.at(-1);
      if (bulk && bulk.launched === launched && bulk.collective === this.#collective) bulk.listed++;
    }
  }

  /**
   * RAS lists only the rarer counts by rank and may so name the healthy ones (nccl issue 1911). Where all
   * ranks that are not listed must have the one remaining count, they are added, without host and process.
   */
  fill(size: number): void {
    for (const collective of new Set(this.#bulk.map((b) => b.collective))) {
      const unlisted = this.#bulk.filter((b) => b.collective === collective && b.listed === 0);
      const only = unlisted[0];
      if (unlisted.length !== 1 || !only) continue;
      const known = new Set<number>();
      for (const p of [...this.missing, ...this.left]) known.add(p.commRank);
      for (const c of this.counts) if (c.collective === collective) known.add(c.commRank);
      if (size - known.size !== only.ranks || size > MAX_RANK) continue;
      for (let commRank = 0; commRank < size; commRank++) {
        if (known.has(commRank)) continue;
        this.counts.push({
          commRank,
          host: "",
          pid: -1,
          gpu: -1,
          collective,
          launched: only.launched,
        });
      }
    }
  }
}

export class RasTextReport {
  /** Ranks per communicator by the group's number in the table. */
  readonly sizes = new Map<number, number>();
  complete = false;
  readonly #comms = new Map<string, RasTextComm>();
  readonly #processes: RasMissing[] = [];

  comm(group: number, index: number, hash: string, line: number): RasTextComm {
    const key = `${group}-${index}-${hash}`;
    const comm = getOrInsert(this.#comms, key, () => new RasTextComm(group, hash, line));
    comm.topic({}, 0);
    return comm;
  }

  /** A process that the job's blocks name. */
  process(kind: string, pid: number, host: string, gpu: number): void {
    if (kind === "TIMEOUT") return;
    const state = kind === "DEAD" ? "dead" : "unresponsive";
    this.#processes.push({ commRank: -1, host, pid, gpu, state });
  }

  build(file: string): RasReport {
    const states = new Map(this.#processes.map((p) => [`${p.host}:${p.pid}`, p.state]));
    const communicators = [...this.#comms.values()].map((comm): RasCommunicator => {
      const size = this.sizes.get(comm.group) ?? 0;
      comm.fill(size);
      return {
        hash: comm.hash,
        size,
        missing: [
          ...comm.missing.map((p) => ({
            ...p,
            state: states.get(`${p.host}:${p.pid}`) ?? ("missing" as const),
          })),
          // The process answers but has left the communicator.
          ...comm.left.map((p) => ({ ...p, state: "missing" as const })),
        ],
        counts: comm.counts,
        line: comm.line,
      };
    });
    return { file, communicators, missingProcesses: this.#processes };
  }
}
