/**
 * Asks NCCL's RAS subsystem for the state of a job (NVIDIA/nccl: src/ras/client_support.cc): lines over TCP, the answer
 * ends when the other side closes. JSON from NCCL 2.28 on, text before.
 */
import { connect, type Socket } from "node:net";

export const RAS_PORT = 28_028;
const PROTOCOL = 2;
/**
 * All processes of a machine listen on one port, and the kernel gives a connection to any of them; one that is stopped
 * never answers. NCCL's own client gives up on such a connection after a second and tries anew.
 */
const HANDSHAKE_MS = 1000;
const ATTEMPTS = 8;
/** NCCL waits 5 s for its peers, twice, before it answers without them. */
const ANSWER_MS = 15_000;
const MOST_BYTES = 64 << 20;
const MOST_LINE = 65_536;

export interface RasAnswer {
  readonly format: "json" | "text";
  readonly bytes: Buffer;
  /** What is missing from it; null where it is whole. */
  readonly defect: string | null;
}

export interface RasOptions {
  readonly host: string;
  readonly port: number;
  readonly handshakeMs?: number;
  readonly answerMs?: number;
  readonly mostBytes?: number;
}

/** "host:port", "[::1]:28028", "host", ":port"; null where it is none of these. */
export function rasAddress(words: string): { host: string; port: number } | null {
  const match = /^(?:\[([^\]]+)\]|([^:\s]*))(?::(\d{1,5}))?$/.exec(words.trim());
  if (!match) return null;
  const port = match[3] === undefined ? RAS_PORT : Number(match[3]);
  if (port < 1 || port > 65_535) return null;
  return { host: match[1] ?? (match[2] || "localhost"), port };
}

/** Throws with one line where nobody answers. */
export async function askRas(options: RasOptions): Promise<RasAnswer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await askOnce(options);
    if (answer !== null) return answer;
    if (attempt === ATTEMPTS)
      throw new Error(`accepts connections and does not answer (${ATTEMPTS} tried)`);
  }
}

/** Null where the other side was silent in the handshake. */
async function askOnce(options: RasOptions): Promise<RasAnswer | null> {
  const { host, port, handshakeMs = HANDSHAKE_MS, answerMs = ANSWER_MS } = options;
  const socket = connect({ host, port });
  const input = new Input(socket, options.mostBytes ?? MOST_BYTES);
  try {
    if (!(await input.connected(handshakeMs))) return null;
    socket.write(`CLIENT PROTOCOL ${PROTOCOL}\n`);
    const hello = await input.line(handshakeMs);
    if (hello === null) return null;
    if (!/^SERVER PROTOCOL /i.test(hello)) throw new Error("is not NCCL's RAS");
    socket.write("SET FORMAT json\n");
    const reply = await input.line(handshakeMs);
    if (reply === null) return null;
    // "ERROR: Unknown command" before NCCL 2.28, which goes on with text.
    const format = /^OK$/i.test(reply) ? "json" : "text";
    socket.write("VERBOSE STATUS\n");
    const { bytes, defect } = await input.rest(answerMs);
    if (bytes.length === 0) throw new Error(defect ?? "closed the connection without an answer");
    return { format, bytes, defect };
  } finally {
    socket.destroy();
  }
}

/** What has come over a socket, taken by lines and then as a whole. */
class Input {
  #chunks: Buffer[] = [];
  #size = 0;
  #error: Error | null = null;
  #isConnected = false;
  #isEnded = false;
  #wake: () => void = () => {};

  constructor(socket: Socket, mostBytes: number) {
    const changed = (change: () => void) => (): void => {
      change();
      this.#wake();
    };
    socket.on(
      "connect",
      changed(() => (this.#isConnected = true)),
    );
    socket.on(
      "end",
      changed(() => (this.#isEnded = true)),
    );
    socket.on(
      "close",
      changed(() => (this.#isEnded = true)),
    );
    socket.on("error", (error) => {
      this.#error = error;
      this.#wake();
    });
    socket.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#size += chunk.length;
      if (this.#size > mostBytes) {
        this.#error = new Error(`its answer is longer than ${mostBytes} bytes`);
        socket.destroy();
      }
      this.#wake();
    });
  }

  connected(limitMs: number): Promise<boolean> {
    return this.#until(() => this.#isConnected, limitMs);
  }

  async line(limitMs: number): Promise<string | null> {
    const there = (): boolean => this.#chunks.some((chunk) => chunk.includes(10));
    if (!(await this.#until(() => there() || this.#size > MOST_LINE || this.#isEnded, limitMs)))
      return null;
    const all = Buffer.concat(this.#chunks);
    const end = all.indexOf(10);
    if (end < 0) return all.length > 0 ? all.toString("latin1") : null;
    this.#chunks = [all.subarray(end + 1)];
    this.#size = all.length - end - 1;
    return all.toString("latin1", 0, end).trimEnd();
  }

  async rest(limitMs: number): Promise<{ bytes: Buffer; defect: string | null }> {
    let defect: string | null = null;
    try {
      if (!(await this.#until(() => this.#isEnded, limitMs)))
        defect = `did not finish its answer within ${limitMs / 1000} s`;
    } catch (error) {
      defect = (error as Error).message;
    }
    return { bytes: Buffer.concat(this.#chunks), defect };
  }

  /** False where the time is over before. */
  async #until(isDone: () => boolean, limitMs: number): Promise<boolean> {
    const end = performance.now() + limitMs;
    for (;;) {
      if (this.#error !== null) throw this.#error;
      if (isDone()) return true;
      const left = end - performance.now();
      if (left <= 0) return false;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, left);
      });
      clearTimeout(timer);
    }
  }
}
