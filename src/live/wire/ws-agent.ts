/** The agent's end over a WebSocket: hello, then reports by number; the service acknowledges numbers, the rest is sent again. */
import { WebSocket, type RawData } from "ws";
import { UserError } from "../../base/errors.ts";
import { createAnswerer } from "./answer.ts";
import { decodeFrame, encodeHello, type Frame, FrameError } from "./codec.ts";
import { LIMITS } from "./messages.ts";
import { createOutbox } from "./outbox.ts";
import type { AgentLink, AgentLinkOptions } from "./transport.ts";
import { createTroubleReporter, safely } from "./trouble.ts";
import { CLOSE } from "./ws-close.ts";

export interface LinkTiming {
  readonly firstBackoffMs: number;
  readonly longestBackoffMs: number;
  readonly pingMs: number;
  /**
   * Without a sign of the service for so long, the connection is given up. One that ended hangs up at once; a busy one may be
   * silent for as long as a search takes, and to come again would only make it busier.
   */
  readonly deadMs: number;
  readonly connectMs: number;
  random(): number;
}

const TIMING: LinkTiming = {
  firstBackoffMs: 500,
  longestBackoffMs: 15_000,
  pingMs: 4000,
  deadMs: 45_000,
  connectMs: 10_000,
  random: Math.random,
};
/** A connection that lasted so long was a good one: the next try comes soon. */
const GOOD_MS = 10_000;
/** Bytes handed to the socket and not sent yet; beyond, reports wait in the buffer, where the oldest can be dropped. */
const MOST_UNSENT = 1 << 20;
const CLOSING_MS = 1000;
/** The service was reached, and says why it does not take this agent. */
const REFUSALS: ReadonlySet<number> = new Set([CLOSE.forbidden, CLOSE.taken]);

export function agentUrl(url: string): string {
  const text = url.replace(/^http(s?):\/\//i, "ws$1://");
  let parsed: URL;
  try {
    parsed = new URL(text);
  } catch {
    throw new UserError(
      `${url} is no URL`,
      "give the service as ws://host:port or wss://host:port",
      2,
    );
  }
  if (parsed.protocol !== "ws:" && parsed.protocol !== "wss:") {
    throw new UserError(
      `${url} is not the URL of a service`,
      "give it as ws://host:port or wss://host:port",
      2,
    );
  }
  parsed.pathname = `${parsed.pathname.replace(/\/+$/, "")}/agent`;
  parsed.hash = "";
  return parsed.href;
}

/** Throws UserError where the URL is none; afterwards nothing throws. */
export function openWebSocketLink(
  options: AgentLinkOptions,
  timing: Partial<LinkTiming> = {},
): AgentLink {
  const { firstBackoffMs, longestBackoffMs, pingMs, deadMs, connectMs, random } = {
    ...TIMING,
    ...timing,
  };
  const url = agentUrl(options.url);
  const outbox = createOutbox(options.bufferBytes, null);
  const trouble = createTroubleReporter(options.onTrouble);
  const answer = createAnswerer(options.answer);
  let socket: WebSocket | null = null;
  let welcomedAt = 0;
  let heardAt = 0;
  let attempts = 0;
  let isClosed = false;
  let isBlocked = false;
  /** The service hung up because of a frame of ours. */
  let wasMalformed = false;
  let retry: NodeJS.Timeout | undefined;

  const pump = (): void => {
    if (socket === null || welcomedAt === 0) return;
    while (socket.readyState === WebSocket.OPEN) {
      if (socket.bufferedAmount > MOST_UNSENT) {
        isBlocked = true;
        return;
      }
      const entry = outbox.next();
      if (entry?.bytes == null) return;
      socket.send(entry.bytes, sent);
    }
  };
  const sent = (): void => {
    if (!isBlocked) return;
    isBlocked = false;
    pump();
  };
  const welcome = (sequence: number): void => {
    welcomedAt = performance.now();
    trouble.clear();
    outbox.takenThrough(sequence);
    // What was hung up on would be hung up on again: it is the first that the service has not had.
    if (wasMalformed) outbox.dropFirst();
    wasMalformed = false;
    outbox.rewind();
    safely(options.onConnected);
    pump();
  };

  const receive = (at: WebSocket, frame: Frame | FrameError): void => {
    if (frame instanceof FrameError) {
      trouble.report(`the service sent ${frame.message}`);
    } else if (frame.type === "ack") {
      if (welcomedAt === 0) welcome(frame.sequence);
      else outbox.takenThrough(frame.sequence);
    } else if (frame.type === "request") {
      void answer(frame.id, frame.request).then(async (parts) => await sendInTurn(at, parts));
    }
  };

  const connect = (): void => {
    const at = new WebSocket(url, {
      headers: options.token === null ? {} : { authorization: `Bearer ${options.token}` },
      perMessageDeflate: false,
      maxPayload: LIMITS.reportBytes,
      handshakeTimeout: connectMs,
      ...(options.ca === null ? {} : { ca: options.ca }),
    });
    socket = at;
    welcomedAt = 0;
    isBlocked = false;
    const hear = (): void => void (heardAt = performance.now());
    let pinging: NodeJS.Timeout | undefined;
    let why = "";
    at.on("open", () => {
      hear();
      at.send(encodeHello(options.hello));
      let lookedAt = performance.now();
      pinging = setInterval(() => {
        const now = performance.now();
        // After a pause of our own (a stopped machine, a long answer) what came meanwhile is read first.
        const wasAway = now - lookedAt > 2 * pingMs;
        lookedAt = now;
        if (!wasAway && now - heardAt > deadMs) {
          why = `no sign of it for ${deadMs} ms`;
          at.terminate();
        } else at.ping();
      }, pingMs);
    });
    at.on("ping", hear);
    at.on("pong", hear);
    at.on("message", (data: RawData) => {
      hear();
      receive(at, decodeFrame(bytesOf(data)));
    });
    at.on("error", (error) => (why ||= reasonOf(error)));
    at.on("close", (code, reason) => {
      clearInterval(pinging);
      const lasted = welcomedAt === 0 ? 0 : performance.now() - welcomedAt;
      if (socket === at) socket = null;
      welcomedAt = 0;
      if (isClosed) return;
      // 1009 is what `ws` says of a message beyond every bound.
      wasMalformed = (code === CLOSE.malformed || code === 1009) && lasted > 0;
      if (lasted > GOOD_MS) attempts = 0;
      const refusal = REFUSALS.has(code) ? reason.toString() : "";
      trouble.report(
        refusal === ""
          ? `the service at ${url} ${why === "" ? `is unreachable: ${reason.toString() || `closed (${code})`}` : why}`
          : `the service at ${url} refuses ${options.hello.agent}: ${refusal}`,
      );
      const longest = Math.min(longestBackoffMs, firstBackoffMs * 2 ** Math.min(attempts++, 30));
      retry = setTimeout(connect, longest * (0.5 + random() / 2));
    });
  };
  connect();

  return {
    get isConnected() {
      return welcomedAt > 0;
    },
    get dropped() {
      return { ...outbox.dropped };
    },
    get bufferedBytes() {
      return outbox.bytes;
    },
    send(report) {
      if (isClosed) return;
      const why = outbox.push(report, "");
      if (why !== null) trouble.report(`a report was not sent: ${why}`);
      pump();
    },
    async flush(withinMs) {
      await outbox.emptied(withinMs);
    },
    async close() {
      isClosed = true;
      clearTimeout(retry);
      outbox.close();
      const at = socket;
      if (at === null) return;
      await new Promise<void>((resolve) => {
        const late = setTimeout(() => at.terminate(), CLOSING_MS);
        at.once("close", () => {
          clearTimeout(late);
          resolve();
        });
        at.close(1000);
      });
    },
  };
}

/** One part at a time: reports get through between the parts of a long answer. */
async function sendInTurn(at: WebSocket, parts: readonly Uint8Array[]): Promise<void> {
  for (const part of parts) {
    if (at.readyState !== WebSocket.OPEN) return;
    await new Promise<void>((resolve) => at.send(part, () => resolve()));
  }
}

export function bytesOf(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

function reasonOf(error: Error): string {
  const status = /Unexpected server response: (\d+)/.exec(error.message)?.[1];
  if (status === "401") return "does not accept our token";
  if (status === "403") return "says that our token is not for agents";
  if (status !== undefined) return `answered with HTTP status ${status}`;
  // Several addresses were tried: the whole has no message of its own.
  const { code } = error as NodeJS.ErrnoException;
  return `is unreachable: ${error.message || (code ?? "no answer")}`;
}
