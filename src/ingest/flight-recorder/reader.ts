/**
 * PyTorch flight-recorder dumps, pickle or JSON (formats 2.0 to 2.10; written by
 * torch/csrc/distributed/c10d/FlightRecorder*.hpp on a watchdog timeout, through the debug pipe or by
 * torch._C._distributed_c10d._dump_nccl_trace). One file a rank, no ending, the rank in its name.
 */
import type { FlightDump } from "../../model/operators.ts";
import type { Defect, Reading } from "../../model/reading.ts";
import { rankFromName, type Head, type Reader } from "../reader.ts";
import { wholeFile } from "../whole-file.ts";
import { readPickle } from "../pickle.ts";
import { decodeJsonDump } from "./json-dump.ts";
import { decodePickleDump } from "./pickle-dump.ts";

/** A ring of 20,000 entries with stacks is 4 MB; this is no limit for honest dumps. */
const MAX_BYTES = 512 * 1024 * 1024;

export const flightRecorder: Reader = {
  format: "flight-recorder",
  sniff(head: Head): boolean {
    return looksLikePickle(head.bytes) || looksLikeJsonDump(head.text);
  },
  open: (file) =>
    wholeFile(MAX_BYTES, (bytes) => {
      if (bytes === null) {
        const what = "larger than any flight-recorder dump; not read";
        return reading(file, null, [{ file, what }]);
      }
      return bytes[0] === 0x80 ? readPickleDump(file, bytes) : readJsonDump(file, bytes);
    }),
};

function looksLikePickle(bytes: Uint8Array): boolean {
  // PROTO 2 to 5, then what a dict or an (also hostile) global begins with: at least one opcode.
  return bytes.length >= 2 && bytes[0] === 0x80 && bytes[1]! >= 1 && bytes[1]! <= 16;
}

function looksLikeJsonDump(text: string): boolean {
  return /^\s*\{/.test(text) && /"(pg_config|pg_status)"\s*:|"entries"\s*:\s*\[/.test(text);
}

function readPickleDump(file: string, bytes: Buffer): Reading {
  const data = readPickle(bytes);
  const { problem } = data;
  if (problem?.kind === "refused") {
    const what =
      `refused: the pickle tries to run code (opcode ${problem.opcode} at byte ${problem.offset}); ` +
      `a flight-recorder dump never does`;
    return reading(file, null, [{ file, what }]);
  }
  const dump = decodePickleDump(data, file);
  const defects: Defect[] = [];
  if (problem?.kind === "truncated") {
    const kept = dump ? `; ${dump.ops.count} whole entries were kept` : "";
    defects.push({ file, what: `cut off after ${problem.offset} bytes${kept}` });
  } else if (problem?.kind === "malformed") {
    defects.push({ file, what: `not a readable pickle: ${problem.why} (byte ${problem.offset})` });
  } else if (!dump) {
    defects.push({ file, what: "a pickle, but not a flight-recorder dump" });
  }
  return reading(file, dump, defects);
}

function readJsonDump(file: string, bytes: Buffer): Reading {
  let root: unknown;
  try {
    root = JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return reading(file, null, [{ file, what: `not readable as JSON: ${why.slice(0, 120)}` }]);
  }
  const dump = decodeJsonDump(root, file);
  return reading(file, dump, dump ? [] : [{ file, what: "not a flight-recorder dump" }]);
}

function reading(file: string, dump: FlightDump | null, defects: Defect[]): Reading {
  const version = /^(\d+)\.(\d+)$/.exec(dump?.version ?? "");
  if (dump && dump.version !== "" && Number(version?.[1] ?? 0) !== 2) {
    const what = `flight-recorder format ${dump.version} is unknown (known: 2.x); read as far as possible`;
    defects.push({ file, what });
  }
  return {
    file,
    format: "flight-recorder",
    rank: rankFromName(file),
    records: dump?.ops.count ?? 0,
    defects,
    ...(dump ? { dumps: [dump] } : {}),
  };
}
