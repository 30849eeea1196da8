/**
 * What `ncclras` (or STATUS on port 28028) prints as text about a job.
 * Defined in NVIDIA/nccl: src/ras/client_support.cc; the wording below covers 2.24 ("The missing rank: 21",
 * "collective operation counts") to 2.28. Indentation is not relied upon: people paste these reports.
 */
import type { Defect, Reading } from "../model/reading.ts";
import { RasTextReport } from "./ras-report.ts";
import type { RasBlock } from "./ras-report.ts";
import { LineSink } from "./line-sink.ts";
import type { Head, Reader, Sink } from "./reader.ts";

const FORMAT = "nccl-ras";

const VERSION = /^NCCL version (\S+) compiled with CUDA/;
/** group, comms, nodes, ranks per node ("7-8"), ranks per comm, ranks in group, status, errors */
const TABLE_ROW = /^(\d{1,9}) +\d+ +\d+ +[\d-]+ +(\d{1,9}) +\d+ +[A-Z]+ +[A-Z,]+$/;
const COMM_BLOCK = /^#(\d{1,9})-(\d{1,9}) \(([0-9a-fA-F]{1,16})\) ([A-Z]+)$/;
const JOB_BLOCK = /^(INCOMPLETE|DEAD|TIMEOUT)$/;
const PROCESS = /^Process (\d{1,10}) on node (\S+) managing GPUs? ([\d,]*)/;
const RANK = /^Rank (\d{1,9})(?: (has|reported) (.{1,200}?))? -- (.*)$/;
const WHERE = /^GPU (\d{1,4})(?: \(NVML \d+\))? managed by process (\d{1,10}) on node (\S+)/;
const MANY = /^(\d{1,9}) ranks (have|reported) (.+)$/;
const MISSING_RANKS = /^The missing ranks?: ([\d, ]+)$/;
const COUNTS_OF = /^Communicator ranks have different (\S+) operation counts$/;
const LAUNCHED = /^launched up to operation (\d{1,15})$/;

export const ncclRasText: Reader = {
  format: FORMAT,
  sniff(head: Head): boolean {
    const text = head.text;
    if (!/^(?:[^\n]*\n){0,20}?\s*NCCL version \S+ compiled with CUDA/.test(text.slice(0, 8192)))
      return false;
    return text.includes("Job summary") || text.includes("Communicators...");
  },
  open(file: string): Sink {
    return new RasTextSink(file);
  },
};

class RasTextSink extends LineSink {
  /** A file may hold the answers to several queries; the last whole one counts. */
  #report = new RasTextReport();
  #before: RasTextReport | null = null;
  #reports = 0;
  #block: RasBlock | null = null;
  #strays = 0;

  finish(): Reading {
    const defects: Defect[] = [];
    const say = (what: string): void => void defects.push({ file: this.file, what });
    let report = this.#report;
    if (!report.complete && this.#before) {
      report = this.#before;
      say("the last RAS report is cut off; kept the one before it");
    } else if (!report.complete) say("the RAS report is cut off");
    if (this.#strays > 0) say(`${this.#strays} lines of the RAS report have an unknown wording`);
    const ras = report.build(this.file);
    return {
      file: this.file,
      format: FORMAT,
      rank: null,
      records: ras.communicators.length,
      defects,
      ras,
    };
  }

  line(given: string, no: number): void {
    const text = given.trim();
    if (text === "" || text.startsWith("=")) return;
    const version = text.startsWith("NCCL version") ? VERSION.exec(text) : null;
    if (version) {
      if (this.#report.complete) this.#before = this.#report;
      this.#report = new RasTextReport();
      this.#reports++;
      this.#block = null;
      return;
    }
    if (this.#reports === 0) return;
    const report = this.#report;
    if (text === "Warnings") {
      // The heading is printed whether or not there are any; what comes before it is whole then.
      report.complete = true;
      this.#block = null;
      return;
    }
    const row = TABLE_ROW.exec(text);
    if (row) {
      report.sizes.set(Number(row[1]), Number(row[2]));
      return;
    }
    const comm = text.startsWith("#") ? COMM_BLOCK.exec(text) : null;
    if (comm) {
      const kind = comm[4] as string;
      this.#block = {
        kind,
        comm: report.comm(Number(comm[1]), Number(comm[2]), comm[3] as string, no),
      };
      return;
    }
    if (JOB_BLOCK.test(text)) {
      this.#block = { kind: text, comm: null };
      return;
    }
    if (this.#block && !this.#detail(this.#block, text)) this.#strays++;
  }

  #detail(block: RasBlock, text: string): boolean {
    const { comm } = block;
    if (!comm) {
      const process = PROCESS.exec(text);
      if (process) {
        const gpu = Number((process[3] as string).split(",")[0] || -1);
        this.#report.process(block.kind, Number(process[1]), process[2] as string, gpu);
      }
      return process !== null || /^(Missing|\d|\[could not|Encountered)/.test(text);
    }
    const rank = RANK.exec(text);
    if (rank) {
      const where = WHERE.exec(rank[4] as string);
      const process = {
        commRank: Number(rank[1]),
        host: where?.[3] ?? "",
        pid: where ? Number(where[2]) : -1,
        gpu: where ? Number(where[1]) : -1,
      };
      if (rank[3] !== undefined) comm.topic(meaning(rank[3]), 1);
      comm.listed(block.kind, process);
      return true;
    }
    const many = MANY.exec(text);
    if (many) {
      comm.topic(meaning(many[3] as string), Number(many[1]));
      return true;
    }
    const counts = COUNTS_OF.exec(text);
    if (counts) comm.collective(counts[1] as string);
    const missing = MISSING_RANKS.exec(text);
    for (const r of missing ? (missing[1] as string).split(",") : []) {
      comm.listed(block.kind, { commRank: Number(r), host: "", pid: -1, gpu: -1 });
    }
    return true;
  }
}

/** What is said of a rank, or of several: a launch count, a status; nothing of an error. */
function meaning(said: string): { launched?: number; status?: string } {
  const launched = LAUNCHED.exec(said);
  if (launched) return { launched: Number(launched[1]) };
  if (said === "not launched any operations") return { launched: 0 };
  if (said.startsWith("status ")) return { status: said.slice(7) };
  return {};
}
