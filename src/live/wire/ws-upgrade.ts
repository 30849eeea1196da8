/** Who may open a WebSocket at /agent; everybody else gets one HTTP answer and is let go. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

export interface Authorized {
  readonly name: string;
  readonly agent: string | null;
  /** Patterns of the jobs that it may report; null for all. */
  readonly jobs: readonly string[] | null;
}

export type Authorization = Authorized | { readonly status: 401 | 403; readonly why: string };

const STATUS = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  503: "Service Unavailable",
} as const;

export function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?", 1)[0]!;
}

export function refuseUpgrade(socket: Duplex, status: keyof typeof STATUS, why: string): void {
  const body = `${why.replace(/[^\x20-\x7e]/g, "?")}\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS[status]}\r\nConnection: close\r\nContent-Type: text/plain\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
