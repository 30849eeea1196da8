/**
 * What `ncclras -f json` prints about a job (NCCL 2.28 and later).
 * Defined in NVIDIA/nccl: src/ras/client_support.cc, the jsonWrite… functions.
 */
import { fieldsOf, parseFields, type Fields } from "../base/json.ts";
import type { RasCommunicator, RasMissing, RasProcess } from "../model/ras.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { JsonObjects } from "./json-objects.ts";
import { commHash } from "./ras-report.ts";
import type { Head, Reader, Sink } from "./reader.ts";

const FORMAT = "nccl-ras";

export const ncclRasJson: Reader = {
  format: FORMAT,
  sniff(head: Head): boolean {
    return (
      /^\s*(?:OK\s+)?\{/.test(head.text) &&
      head.text.includes('"nccl_version"') &&
      head.text.includes('"communicators')
    );
  },
  open(file: string): Sink {
    return new RasJsonSink(file);
  },
};

class RasJsonSink implements Sink {
  readonly #file: string;
  readonly #documents: JsonObjects;
  readonly #comms = new Map<string, RasCommunicator>();
  #bad = 0;

  constructor(file: string) {
    this.#file = file;
    this.#documents = new JsonObjects(2, (text, line) => this.#communicator(text, line));
  }

  push(chunk: Uint8Array): void {
    this.#documents.push(chunk);
  }

  end(): Reading {
    const defects: Defect[] = [];
    const say = (what: string): void => void defects.push({ file: this.#file, what });
    if (this.#bad > 0) say(`${this.#bad} communicators of the RAS report cannot be read`);
    if (this.#documents.unfinished) say("the RAS report is cut off");
    const missing = new Map<string, RasMissing>();
    for (const comm of this.#comms.values()) {
      for (const m of comm.missing) {
        // A rank that answers but has left one communicator is not a missing process.
        if (m.state !== "missing") missing.set(`${m.host}:${m.pid}`, { ...m, commRank: -1 });
      }
    }
    return {
      file: this.#file,
      format: FORMAT,
      rank: null,
      records: this.#comms.size,
      defects,
      ras: {
        file: this.#file,
        communicators: [...this.#comms.values()],
        missingProcesses: [...missing.values()],
      },
    };
  }

  #communicator(text: string, line: number): void {
    const comm = parseFields(text);
    if (!comm || typeof comm["hash"] !== "string") {
      this.#bad++;
      return;
    }
    const ranks = objects(comm["ranks"]);
    const read: RasCommunicator = {
      hash: commHash(comm["hash"]),
      size: number(comm["size"], 0),
      missing: objects(comm["missing_ranks"]).map((m) => ({ ...process(m), state: stateOf(m) })),
      counts: countsOf(ranks),
      line,
    };
    // Several answers in one file (a watch loop): the later one replaces what was known of a communicator.
    this.#comms.set(read.hash, read);
  }
}

function stateOf(missing: Fields): RasMissing["state"] {
  const status = fieldsOf(missing["status"]) ?? {};
  if (status["considered_dead"] === true) return "dead";
  return status["unresponsive"] === true ? "unresponsive" : "missing";
}

/** Only collectives that some rank has launched; NCCL lists all it knows. */
function countsOf(ranks: readonly Fields[]): RasCommunicator["counts"] {
  const counts = ranks.flatMap((rank) =>
    Object.entries(fieldsOf(rank["collective_counts"]) ?? {}).map(([collective, launched]) => ({
      ...process(rank),
      collective,
      launched: number(launched, 0),
    })),
  );
  const used = new Set(counts.filter((c) => c.launched > 0).map((c) => c.collective));
  return counts.filter((c) => used.has(c.collective));
}

function process(value: Fields): RasProcess {
  const host = value["host"];
  return {
    commRank: number(value["rank"], -1),
    host: typeof host === "string" && host !== "unknown" ? host : "",
    pid: number(value["pid"], -1),
    gpu: number(value["cuda_dev"], -1),
  };
}

function number(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

function objects(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf).filter((v) => v !== null) : [];
}
