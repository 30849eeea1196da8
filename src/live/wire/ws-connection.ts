/** One agent's WebSocket on the service's side: its frames one after the other, and no more of them in memory than a little. */
import type { Duplex } from "node:stream";
import { WebSocket, type RawData } from "ws";
import { decodeFrame, type Frame, FrameError } from "./codec.ts";
import { FRAME, typeOf } from "./frame.ts";
import { bytesOf } from "./ws-agent.ts";

export interface ConnectionEvents {
  /** The next report waits for the promise; answers to requests do not wait, reports may depend on them. */
  frame(frame: Frame, bytes: number): Promise<void> | void;
  malformed(why: string): void;
  closed(): void;
}

export interface Connection {
  /** Whether frames wait for the service: a sign of life cannot be expected from a socket that nobody reads. */
  readonly isHeld: boolean;
  /** performance.now() of the last sign of life, and of the last whole frame. */
  readonly heardAt: number;
  readonly frameAt: number;
  /** Bytes of a frame that is not whole yet. */
  readonly halfBytes: number;
  readonly unsentBytes: number;
  send(bytes: Uint8Array): void;
  /** Whether it answers. */
  ping(withinMs: number): Promise<boolean>;
  keepAlive(): void;
  close(code: number, reason: string): void;
  terminate(): void;
}

const MOST_WAITING = 1 << 20;
const CLOSING_MS = 2000;

export function createConnection(
  socket: WebSocket,
  raw: Duplex & { readonly bytesRead?: number },
  on: ConnectionEvents,
): Connection {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let isBusy = false;
  let isDone = false;
  let heardAt = performance.now();
  let frameAt = heardAt;
  let readBytes = raw.bytesRead ?? 0;
  const hear = (): void => void (heardAt = performance.now());

  const malformed = (why: string): void => {
    if (isDone) return;
    isDone = true;
    waiting = [];
    on.malformed(why);
  };
  const handle = (bytes: Uint8Array): Promise<void> | void => {
    const frame = decodeFrame(bytes);
    if (frame instanceof FrameError) malformed(frame.message);
    else return on.frame(frame, bytes.length);
  };
  const drain = async (first: Promise<void>): Promise<void> => {
    isBusy = true;
    await first;
    for (let bytes = waiting.shift(); bytes !== undefined && !isDone; bytes = waiting.shift()) {
      waitingBytes -= bytes.length;
      if (socket.isPaused && waitingBytes < MOST_WAITING / 2) socket.resume();
      await handle(bytes);
    }
    isBusy = false;
  };

  socket.on("message", (data: RawData, isBinary: boolean) => {
    hear();
    frameAt = heardAt;
    readBytes = raw.bytesRead ?? 0;
    if (isDone) return;
    if (!isBinary) {
      malformed("text where frames belong");
      return;
    }
    const bytes = bytesOf(data);
    const type = typeOf(bytes);
    if (isBusy && type !== FRAME.reply && type !== FRAME.part) {
      waiting.push(bytes);
      waitingBytes += bytes.length;
      if (waitingBytes > MOST_WAITING) socket.pause();
      return;
    }
    const first = handle(bytes);
    // A handler that fails has been seen to by the bus; here it only ends the wait.
    if (first !== undefined && !isBusy) drain(first).catch(() => socket.terminate());
  });
  socket.on("ping", hear);
  socket.on("pong", hear);
  socket.on("error", (error: NodeJS.ErrnoException) => {
    // What `ws` itself finds wrong with a frame; a broken connection is no lie of the agent's.
    if (error.code?.startsWith("WS_ERR") === true) malformed("a message that is no whole frame");
  });
  socket.on("close", () => {
    isDone = true;
    waiting = [];
    on.closed();
  });

  return {
    get isHeld() {
      return isBusy || socket.isPaused;
    },
    get heardAt() {
      return heardAt;
    },
    get frameAt() {
      return frameAt;
    },
    get halfBytes() {
      return (raw.bytesRead ?? 0) - readBytes;
    },
    get unsentBytes() {
      return socket.bufferedAmount;
    },
    send(bytes) {
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes);
    },
    async ping(withinMs) {
      return await new Promise<boolean>((resolve) => {
        const done = (answers: boolean): void => {
          clearTimeout(late);
          socket.off("pong", pong);
          socket.off("close", gone);
          resolve(answers);
        };
        const pong = (): void => done(true);
        const gone = (): void => done(false);
        const late = setTimeout(gone, withinMs);
        socket.on("pong", pong);
        socket.on("close", gone);
        // A socket that waits for the service would not hear the answer.
        socket.resume();
        if (socket.readyState === WebSocket.OPEN) socket.ping();
        else gone();
      });
    },
    keepAlive() {
      if (socket.readyState === WebSocket.OPEN) socket.ping();
    },
    close(code, reason) {
      isDone = true;
      socket.close(code, reason.slice(0, 120));
      // Whoever does not answer the farewell is not waited for.
      setTimeout(() => socket.terminate(), CLOSING_MS).unref();
    },
    terminate() {
      isDone = true;
      socket.terminate();
    },
  };
}
