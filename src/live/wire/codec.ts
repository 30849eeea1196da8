/** All that goes over the wire, to bytes and back. Decoding returns a FrameError as a value: the sender may be broken or lie. */
import { integerIn, listIn, nameIn, textIn, type Fields } from "./fields.ts";
import { FRAME, FrameError, readFrame, type RawFrame, writeFrame } from "./frame.ts";
import type { AgentHello, AgentReply, AgentRequest, Report } from "./messages.ts";
import { LIMITS } from "./messages.ts";
import { checkReply, readReply, replyColumns, replyHead } from "./reply-frame.ts";
import { checkReport, readReport, reportColumns, reportHead } from "./report-frame.ts";
import { readRequest } from "./request-frame.ts";

export { FrameError } from "./frame.ts";

export interface HelloFrame {
  readonly type: "hello";
  readonly hello: AgentHello;
}
export interface ReportFrame {
  readonly type: "report";
  /** Counts within the agent's boot. */
  readonly sequence: number;
  /** null: of a kind that this version does not know. */
  readonly report: Report | null;
  /** Said in every report where no connection stands for the agent: NATS. */
  readonly from: AgentHello | null;
}
/** All reports up to this one have been taken; after a hello, what the service has had of this boot before. */
export interface AckFrame {
  readonly type: "ack";
  readonly sequence: number;
}
export interface RequestFrame {
  readonly type: "request";
  readonly id: number;
  readonly request: AgentRequest;
}
export interface ReplyFrame {
  readonly type: "reply";
  readonly id: number;
  readonly reply: AgentReply;
}
/** A stretch of a reply's frame: long answers come in several, so that beats get through between them. */
export interface PartFrame {
  readonly type: "part";
  readonly id: number;
  readonly index: number;
  readonly parts: number;
  readonly bytes: Uint8Array;
}
export type Frame = HelloFrame | ReportFrame | AckFrame | RequestFrame | ReplyFrame | PartFrame;

export const PART_BYTES = 512 << 10;
const MOST_PARTS = Math.ceil(LIMITS.replyBytes / PART_BYTES) + 1;
/** Above any head of a bounded reply; the reply's columns count against LIMITS.replyBytes. */
const MOST_FRAME = LIMITS.replyBytes;

export function encodeHello(hello: AgentHello): Uint8Array<ArrayBuffer> {
  return writeFrame(FRAME.hello, { ...hello });
}

export function encodeReport(
  sequence: number,
  report: Report,
  from: AgentHello | null = null,
): Uint8Array<ArrayBuffer> {
  const head = { ...reportHead(report), sequence, ...(from === null ? {} : { from }) };
  return writeFrame(FRAME.report, head, reportColumns(report));
}

export function encodeAck(sequence: number): Uint8Array<ArrayBuffer> {
  return writeFrame(FRAME.ack, { sequence });
}

export function encodeRequest(id: number, request: AgentRequest): Uint8Array<ArrayBuffer> {
  return writeFrame(FRAME.request, { ...request, id });
}

export function encodeReply(id: number, reply: AgentReply): Uint8Array<ArrayBuffer> {
  return writeFrame(FRAME.reply, { ...replyHead(reply), id }, replyColumns(reply));
}

/** The frame itself where it is small, else its parts. */
export function encodeParts(id: number, reply: Uint8Array): readonly Uint8Array[] {
  if (reply.length <= PART_BYTES) return [reply];
  const parts = Math.ceil(reply.length / PART_BYTES);
  return Array.from({ length: parts }, (_, index) => {
    const bytes = reply.subarray(index * PART_BYTES, (index + 1) * PART_BYTES);
    return writeFrame(FRAME.part, { id, index, parts, length: bytes.length }, [bytes]);
  });
}

/** Why no service would take it; null where one would. A wrong one would be refused again and again. */
export const reportDefect = (report: Report): string | null => defectOf(() => checkReport(report));
export const replyDefect = (reply: AgentReply): string | null => defectOf(() => checkReply(reply));

function defectOf(check: () => void): string | null {
  try {
    check();
    return null;
  } catch (error) {
    return error instanceof FrameError ? error.message : "a message that cannot be read";
  }
}

/** Never throws. Typed arrays of the result are views into `bytes` where these are aligned. */
export function decodeFrame(bytes: Uint8Array): Frame | FrameError {
  try {
    return decode(readFrame(bytes, MOST_FRAME), bytes.length);
  } catch (error) {
    return error instanceof FrameError ? error : new FrameError("a frame that cannot be read");
  }
}

function decode({ type, head, payload }: RawFrame, frameBytes: number): Frame {
  if (type !== FRAME.reply && frameBytes > LIMITS.reportBytes) {
    throw new FrameError(`a frame of more than ${LIMITS.reportBytes} bytes`);
  }
  if (type === FRAME.report) {
    const from = head["from"];
    return {
      type: "report",
      sequence: counterIn(head, "sequence", 1),
      report: readReport(head, payload),
      from: from === undefined ? null : readHello(from),
    };
  }
  if (type === FRAME.reply) {
    return { type: "reply", id: counterIn(head, "id", 0), reply: readReply(head, payload) };
  }
  if (type === FRAME.part) return readPart(head, payload);
  if (payload.length > 0) throw new FrameError("a payload where none belongs");
  if (type === FRAME.ack) return { type: "ack", sequence: counterIn(head, "sequence", 0) };
  if (type === FRAME.hello) return { type: "hello", hello: readHello(head) };
  return { type: "request", id: counterIn(head, "id", 0), request: readRequest(head) };
}

const counterIn = (head: Fields, key: string, least: number): number =>
  integerIn(head, key, least, Number.MAX_SAFE_INTEGER);

const MOST_ASKS = 64;

function readHello(value: unknown): AgentHello {
  if (typeof value !== "object" || value === null) throw new FrameError("from is no object");
  const head = value as Fields;
  return {
    protocol: integerIn(head, "protocol", 0, 65_535),
    agent: nameIn(head, "agent"),
    machine: textIn(head, "machine", 256),
    boot: nameIn(head, "boot"),
    version: textIn(head, "version", 64),
    ...(head["asks"] === undefined
      ? {}
      : { asks: listIn(head, "asks", MOST_ASKS, (word) => textIn({ word }, "word", 64)) }),
  };
}

function readPart(head: Fields, payload: Uint8Array): PartFrame {
  const parts = integerIn(head, "parts", 2, MOST_PARTS);
  const length = integerIn(head, "length", 1, PART_BYTES);
  if (payload.length !== Math.ceil(length / 8) * 8) throw new FrameError("a part cut short");
  return {
    type: "part",
    id: counterIn(head, "id", 0),
    index: integerIn(head, "index", 0, parts - 1),
    parts,
    bytes: payload.subarray(0, length),
  };
}
