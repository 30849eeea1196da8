/**
 * The global controller that replicas ask for their micro-batches before each iteration (Greyhound §5.2,
 * "Implementation"): a few requests of plain HTTP and JSON.
 *
 *   POST /v1/jobs/NAME/iterations      an iteration that has ended: counts and seconds by replica
 *   GET  /v1/jobs/NAME/plan?iteration=K[&run=R]   counts and weights; the same for all who ask for K
 *   GET  /v1/jobs/NAME                 what is in force, and all changes with their reasons
 *   GET  /v1/jobs                      the names
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { errorText, UserError } from "../../../base/errors.ts";
import { Refusal } from "../view.ts";
import { evenAllocation, type JobShape } from "./allocation.ts";
import { type JobChange, type Jobs, makeJobs } from "./jobs.ts";
import { answerJob, type Question } from "./requests.ts";

export interface ControllerOptions {
  /** Replicas of the model, and micro-batches of the global batch. */
  readonly groups: number;
  readonly total: number;
  readonly multipleOf?: number;
  /** See JobShape. */
  readonly bubble?: number;
  /** 0: any free one. */
  readonly port: number;
  /** Loopback by default. */
  readonly host?: string;
  /** Where given, requests must carry it: `Authorization: Bearer …`. */
  readonly token?: string;
  /** A request has to be there within this time, and a connection is silent no longer; 10 s by default. */
  readonly patienceMs?: number;
}

export interface ControllerEnv {
  nowMs(): number;
  onChange?(change: JobChange): void;
}

export interface Controller {
  readonly url: string;
  readonly jobs: Jobs;
  stop(): Promise<void>;
}

const MOST_BODY_BYTES = 1 << 20;
/** Reports of so many replicas fit into a body. */
const MOST_GROUPS = 32_768;
const PATIENCE_MS = 10_000;
const MOST_CONNECTIONS = 512;

export async function startController(
  options: ControllerOptions,
  env: ControllerEnv,
): Promise<Controller> {
  const { groups, total, multipleOf = 1, bubble = 0, host = "127.0.0.1", port, token } = options;
  if (!(groups >= 1 && groups <= MOST_GROUPS))
    throw new UserError(`${groups} replicas are not possible`, `give 1 to ${MOST_GROUPS}`, 2);
  if (!(bubble >= 0 && bubble < Infinity))
    throw new UserError(`a bubble of ${bubble} is not possible`, "give (stages − 1) / chunks", 2);
  const shape = { groups, total, multipleOf, bubble };
  evenAllocation(shape); // Throws where the shape is not possible.
  const jobs = makeJobs({
    nowMs: () => env.nowMs(),
    onChange: (change) => env.onChange?.(change),
  });
  const { patienceMs = PATIENCE_MS } = options;
  const times = { connectionsCheckingInterval: patienceMs / 2 };
  const server = createServer(times, (request, response) => {
    answer(request, { jobs, shape, token }).then(
      (value) => send(response, 200, value),
      (error: unknown) => {
        const refusal = error instanceof Refusal ? error : new Refusal(500, "internal error");
        send(response, refusal.status, { error: refusal.message });
      },
    );
  });
  server.on("clientError", turnAway);
  // Places are few: who is slow or silent loses his, in whatever state the connection is.
  server.requestTimeout = patienceMs;
  server.headersTimeout = patienceMs;
  server.timeout = patienceMs;
  server.keepAliveTimeout = patienceMs / 2;
  server.maxConnections = MOST_CONNECTIONS;
  const bound = await listenOn(server, host, port);
  // Trouble with a single connection must not end the service.
  server.on("error", () => undefined);
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    jobs,
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** What is no request, or did not come in time. The place is free at once, whether or not the client hangs up, too. */
function turnAway(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const late = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  const status = late ? "408 Request Timeout" : "400 Bad Request";
  const why = late ? "the request took too long" : "this is no HTTP request";
  const body = `${JSON.stringify({ error: why })}\n`;
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\nconnection: close`;
  socket.end(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`, () => socket.destroy());
}

interface Served {
  readonly jobs: Jobs;
  readonly shape: JobShape;
  readonly token: string | undefined;
}

async function answer(request: IncomingMessage, { jobs, shape, token }: Served): Promise<unknown> {
  if (token !== undefined && !sameText(request.headers.authorization ?? "", `Bearer ${token}`))
    throw new Refusal(401, "the token is missing or wrong");
  const { method = "", url = "" } = request;
  const [path = "", query = ""] = url.split("?", 2);
  const [root, version, kind, job, what, ...rest] = path.split("/");
  if (root !== "" || version !== "v1" || kind !== "jobs" || rest.length > 0)
    throw new Refusal(404, "there is nothing at this path");
  if (job === undefined) return only(method, "GET", () => ({ jobs: jobs.names() }));
  const answered = (question: Question): unknown => answerJob(jobs, job, question, shape);
  if (what === undefined) return only(method, "GET", () => answered({ ask: "state" }));
  if (what === "plan") return only(method, "GET", () => answered({ ask: "plan", query }));
  if (what !== "iterations") throw new Refusal(404, "there is nothing at this path");
  return await only(method, "POST", async () => {
    // A page in somebody's browser cannot send this type unasked.
    if (!/^application\/json\b/i.test(request.headers["content-type"] ?? ""))
      throw new Refusal(415, "the content-type must be application/json");
    return answered({ ask: "report", body: parsed(await bodyOf(request)) });
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, "the body is no JSON");
  }
}

function only<T>(method: string, allowed: string, act: () => T): T {
  if (method !== allowed) throw new Refusal(405, `this path takes ${allowed} only`);
  return act();
}

/** Not an async iteration: leaving one destroys the socket, and the refusal would never be read. */
function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const refuse = (status: number, why: string): void => {
      request.removeAllListeners("data").resume();
      reject(new Refusal(status, why));
    };
    request.on("data", (part: Buffer) => {
      bytes += part.length;
      if (bytes > MOST_BODY_BYTES) refuse(413, "the body is larger than 1 MiB");
      else parts.push(part);
    });
    request.once("end", () => resolve(Buffer.concat(parts).toString("utf8")));
    request.once("error", () => refuse(400, "the body was cut off"));
    request.once("close", () => refuse(400, "the body was cut off"));
  });
}

function send(response: ServerResponse, status: number, value: unknown): void {
  if (response.destroyed || response.headersSent) return;
  // The client may still be sending a body that was refused: the connection ends with the answer.
  if (status >= 400) response.setHeader("connection", "close");
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
  });
  response.end(`${JSON.stringify(value)}\n`);
}

/** In a time that does not tell how much is right. */
function sameText(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** The port in the end: with 0 the system chooses one. */
async function listenOn(server: Server, host: string, port: number): Promise<number> {
  if (!(Number.isInteger(port) && port >= 0 && port <= 65_535))
    throw new UserError(`there is no port ${port}`, "give a --port of 0 to 65535", 2);
  server.listen(port, host);
  await once(server, "listening").catch((error: unknown) => {
    const why = errorText(error);
    throw new UserError(`cannot listen on ${host}, port ${port}: ${why}`, remedyOf(error));
  });
  return (server.address() as AddressInfo).port;
}

function remedyOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return "give another --port";
  if (code === "EACCES") return "give a --port from 1024";
  // No such name, or an address of another machine.
  return "give a --host of this machine, such as 127.0.0.1 or 0.0.0.0";
}
