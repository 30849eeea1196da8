/** Answers as frames: columns for numbers, whole files for evidence. */
import { cutText } from "../../base/text.ts";
import { type Fields, fieldsOf, integerIn, listIn, textIn, timeIn, wordIn } from "./fields.ts";
import {
  checkLengths,
  type Columns,
  columnsOf,
  type Layout,
  lengthsOf,
  readColumns,
  FrameError,
  padded,
  type RawFrame,
} from "./frame.ts";
import type { AgentReply, AgentRequest, EvidenceReply } from "./messages.ts";
import { LIMITS } from "./messages.ts";

const OPERATORS = {
  iteration: { kind: "f64", table: 0 },
  from: { kind: "i32", table: 0 },
  to: { kind: "i32", table: 0 },
  startMs: { kind: "f64", table: 0 },
  durationMs: { kind: "f64", table: 0 },
  op: { kind: "u8", table: 1 },
  group: { kind: "i32", table: 1 },
  peer: { kind: "i32", table: 1 },
  seq: { kind: "i32", table: 1 },
  bytes: { kind: "f64", table: 1 },
  createdNs: { kind: "f64", table: 1 },
  startedNs: { kind: "f64", table: 1 },
  completedNs: { kind: "f64", table: 1 },
} as const satisfies Layout;

const WIRE = {
  rank: { kind: "i32", table: 0 },
  group: { kind: "i32", table: 0 },
  peer: { kind: "i32", table: 0 },
  ms: { kind: "f32", table: 1 },
} as const satisfies Layout;

const LAYOUTS = {
  operators: OPERATORS,
  wire: WIRE,
} as const;

const KINDS = [
  "operators",
  "wire",
  "evidence",
  "refused",
] as const satisfies readonly AgentReply["kind"][];
const MOST_FILES = 16_384;
const NAME_LENGTH = 512;
const MOST_ROWS = LIMITS.replyBytes;

const cut = (text: string): string => cutText(text, LIMITS.textLength);

export function replyHead(reply: AgentReply): Fields {
  const { kind } = reply;
  if (kind === "refused") return { kind, why: cut(reply.why) };
  if (kind === "evidence") {
    const files = reply.files.map(({ name, bytes }) => ({ name, length: bytes.length }));
    return { kind, files, troubles: reply.troubles.map(cut) };
  }
  const epoch = kind === "operators" ? { epochMs: reply.epochMs } : {};
  return { kind, ...epoch, lengths: lengthsOf(LAYOUTS[kind], columnsIn(reply)) };
}

export function replyColumns(reply: AgentReply): ArrayBufferView[] {
  if (reply.kind === "refused") return [];
  if (reply.kind === "evidence") return reply.files.map(({ bytes }) => bytes);
  return columnsOf(LAYOUTS[reply.kind], columnsIn(reply));
}

/** Layout and message are of one kind, which the compiler does not follow. */
function columnsIn(reply: AgentReply): Columns<Layout> {
  return reply as unknown as Columns<Layout>;
}

/** Throws FrameError where no service would take it, before anything is encoded. */
export function checkReply(reply: AgentReply): void {
  if (reply.kind === "refused") return;
  if (reply.kind === "evidence") {
    const head = replyHead(reply);
    listIn(head, "troubles", MOST_FILES, String);
    listIn(head, "files", MOST_FILES, nameOfFile(new Set()));
    return;
  }
  checkLengths(LAYOUTS[reply.kind], replyHead(reply)["lengths"], MOST_ROWS);
  if (reply.kind !== "operators") return;
  timeIn({ ...reply }, "epochMs");
  checkBounds(reply);
}

/** Throws FrameError. */
export function readReply(head: Fields, payload: RawFrame["payload"]): AgentReply {
  const kind = wordIn(head, "kind", KINDS);
  switch (kind) {
    case "wire":
      return { kind, ...readColumns(WIRE, head["lengths"], payload, MOST_ROWS) };
    case "operators":
      return readOperators(head, payload);
    case "evidence":
      return readEvidence(head, payload);
    case "refused":
      if (payload.length > 0) throw new FrameError("a payload behind a reply that has none");
      return { kind, why: textIn(head, "why") };
  }
}

function readOperators(head: Fields, payload: Uint8Array): AgentReply {
  const columns = readColumns(OPERATORS, head["lengths"], payload, MOST_ROWS);
  checkBounds(columns);
  return { kind: "operators", epochMs: timeIn(head, "epochMs"), ...columns };
}

/** Whoever reads an iteration's operators trusts its bounds. */
function checkBounds({
  from,
  to,
  op,
}: Columns<Pick<typeof OPERATORS, "from" | "to" | "op">>): void {
  for (let i = 0; i < from.length; i++) {
    if (from[i]! < 0 || to[i]! < from[i]! || to[i]! > op.length) {
      throw new FrameError("an iteration whose operators are missing");
    }
  }
}

function readEvidence(head: Fields, payload: Uint8Array): EvidenceReply {
  let at = 0;
  const nameOf = nameOfFile(new Set());
  const files = listIn(head, "files", MOST_FILES, (value) => {
    const name = nameOf(value);
    const length = integerIn(value as Fields, "length", 0, payload.length - at);
    const bytes = payload.subarray(at, at + length);
    at += padded(length);
    if (at > payload.length) throw new FrameError("a payload that is not as long as its files");
    return { name, bytes };
  });
  if (at !== payload.length) throw new FrameError("a payload that is not as long as its files");
  const troubles = listIn(head, "troubles", MOST_FILES, (line) => textIn({ line }, "line"));
  return { kind: "evidence", files, troubles };
}

const nameOfFile =
  (names: Set<string>) =>
  (value: unknown): string => {
    const name = textIn(fieldsOf(value, "a file"), "name", NAME_LENGTH);
    if (!isSafePath(name)) throw new FrameError("a file whose name leaves its folder");
    if (names.has(name)) throw new FrameError("two files of one name");
    names.add(name);
    return name;
  };

/** A relative path that stays inside the folder it is put in, on every system. */
function isSafePath(name: string): boolean {
  // oxlint-disable-next-line no-control-regex
  if (name === "" || /[\\:\u0000-\u001f\u007f]/.test(name)) return false;
  return name.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

const ANSWERED_WITH_EVIDENCE: ReadonlySet<AgentRequest["ask"]> = new Set([
  "prepare-tests",
  "validate",
  "read-tests",
  "profile",
]);

/** Why this cannot be the answer to that; null where it can. */
export function misfit(request: AgentRequest, reply: AgentReply): string | null {
  if (reply.kind === "refused") return null;
  if (reply.kind !== (ANSWERED_WITH_EVIDENCE.has(request.ask) ? "evidence" : request.ask))
    return `it answered ${request.ask} with ${reply.kind}`;
  if (request.ask === "wire" && reply.kind === "wire") {
    if (reply.ms.length !== reply.rank.length * request.iterations.length)
      return "its times on the wire are not as many as asked";
  }
  return null;
}
