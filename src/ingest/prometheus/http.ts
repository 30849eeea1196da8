/**
 * Requests whose answers are handed on as their bytes come. No Accept-Encoding: to compress costs the server more than
 * the network saves (2 s of 2.5 s, measured on 900,000 samples).
 */
import http from "node:http";
import https from "node:https";
import { ofNetworkError, ofStatus, ServerFailure } from "./failure.ts";
import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";

type Answer = Readable & {
  readonly headers: { readonly "content-encoding"?: string | undefined };
};

export interface Target {
  /** The API's root, without a slash at its end. */
  readonly base: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: http.Agent;
  /** The longest silence; an answer as a whole may take twice as long. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Request {
  /** Below the root: "/api/v1/query". */
  readonly path: string;
  readonly query?: readonly (readonly [string, string])[];
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** The most that it may take as a whole, where that is less than the server is allowed otherwise. */
  readonly limitMs?: number;
}

export interface Head {
  /** The media type, without parameters. */
  readonly type: string;
  /** The server's clock, to the second; NaN where it does not tell. */
  readonly dateMs: number;
  readonly server: string;
}

/** Servers that send a byte now and then are as good as silent. */
const TOTAL_TO_SILENCE = 2;
const MOST_FAILURE_BYTES = 16_384;
/** Longer URLs are cut or refused by proxies: then the same parameters go as a form. */
const MOST_URL = 4000;

export function newAgent(url: URL, maxSockets: number): http.Agent {
  const options = { keepAlive: true, maxSockets };
  return url.protocol === "https:" ? new https.Agent(options) : new http.Agent(options);
}

/** Which part of a header cannot be sent. */
export function headerFault(name: string, value: string): "name" | "value" | null {
  try {
    http.validateHeaderName(name);
  } catch {
    return "name";
  }
  try {
    http.validateHeaderValue(name, value);
  } catch {
    return "value";
  }
  return null;
}

/**
 * Calls `onHead` for an answer of status 200 only, and what that returns for every chunk. Rejects with a ServerFailure;
 * what `onHead` or the sink throw comes through as it is. Resolves to the number of bytes.
 */
export function request(
  target: Target,
  { path, query = [], body, headers = {}, limitMs = Infinity }: Request,
  onHead: (head: Head) => (chunk: Buffer) => void,
): Promise<number> {
  const url = new URL(target.base);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  const form = new URLSearchParams(query.map(([name, value]): [string, string] => [name, value]));
  let content = body;
  const sent: Record<string, string> = { ...target.headers, ...headers };
  if (content === undefined && form.toString().length > MOST_URL) {
    content = Buffer.from(form.toString());
    sent["content-type"] = "application/x-www-form-urlencoded";
  } else for (const [name, value] of form) url.searchParams.append(name, value);
  if (content) sent["content-length"] = String(content.length);
  const silenceMs = Math.min(target.timeoutMs, limitMs);
  const totalMs = Math.min(target.timeoutMs * TOTAL_TO_SILENCE, limitMs);
  return new Promise((resolve, reject) => {
    const call = (url.protocol === "https:" ? https : http).request(url, {
      method: content ? "POST" : "GET",
      headers: sent,
      agent: target.agent,
      signal: target.signal,
    });
    let hasFailed = false;
    const fail = (error: unknown): void => {
      hasFailed = true;
      clearTimeout(total);
      const failure = target.signal.aborted ? new ServerFailure("aborted", "interrupted") : error;
      reject(failure instanceof Error ? failure : new Error(String(failure)));
      call.destroy();
    };
    const total = setTimeout(() => fail(lateFailure("no whole answer", totalMs)), totalMs);
    call.setTimeout(silenceMs, () => fail(lateFailure("no answer", silenceMs)));
    call.on("error", (error) => fail(ofNetworkError(error)));
    call.on("response", (response) => {
      response.on("error", (error) => fail(ofNetworkError(error)));
      if (response.statusCode !== 200) {
        return void readFailure(response).then(fail, fail);
      }
      // Without an end: the server gave up in the middle of a body whose status said that all is well.
      response.on("close", () => {
        if (!response.complete) fail(new ServerFailure("cut", "the answer broke off"));
      });
      let bytes = 0;
      try {
        const sink = onHead(headOf(response));
        const content = plain(response, fail);
        content.on("data", (chunk: Buffer) => {
          // What is still on its way after a failure belongs to nobody.
          if (hasFailed) return;
          bytes += chunk.length;
          try {
            sink(chunk);
          } catch (error) {
            fail(error);
          }
        });
        content.on("end", () => {
          clearTimeout(total);
          resolve(bytes);
        });
      } catch (error) {
        fail(error);
      }
    });
    call.end(content);
  });
}

function lateFailure(what: string, afterMs: number): ServerFailure {
  return new ServerFailure("timeout", `${what} within ${Math.round(afterMs / 100) / 10} s`);
}

function headOf({ headers }: http.IncomingMessage): Head {
  return {
    type: (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase(),
    dateMs: Date.parse(headers.date ?? ""),
    // VictoriaMetrics says its host in every answer, and nothing else about itself.
    server: "x-server-hostname" in headers ? "VictoriaMetrics" : "",
  };
}

async function readFailure(response: http.IncomingMessage): Promise<ServerFailure> {
  const status = response.statusCode ?? 0;
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of plain(response) as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MOST_FAILURE_BYTES) break;
    }
  } catch {
    // The status says more than how its explanation was lost.
  }
  return ofStatus(status, Buffer.concat(chunks).toString("utf8"), response.headers.location ?? "");
}

/** A small answer as a whole; "foreign" where it is no object of JSON. */
export async function requestJson(
  target: Target,
  what: Request,
  mostBytes: number,
): Promise<{
  readonly head: Head;
  readonly json: Readonly<Record<string, unknown>>;
  readonly bytes: number;
}> {
  const chunks: Buffer[] = [];
  let head: Head | undefined;
  let held = 0;
  const bytes = await request(target, what, (given) => {
    head = given;
    return (chunk) => {
      held += chunk.length;
      if (held > mostBytes) throw new ServerFailure("too-much", "an answer that is too long");
      chunks.push(chunk);
    };
  });
  const json = parsed(Buffer.concat(chunks).toString("utf8"));
  if (json !== null) return { head: head!, json, bytes };
  const kind = head!.type === "text/html" ? "a web page" : `no JSON (${head!.type || "no type"})`;
  throw new ServerFailure("foreign", `it answers with ${kind}, not with the Prometheus API`);
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const json = JSON.parse(text) as unknown;
    return typeof json === "object" ? (json as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

/**
 * Answers of proxies that compress them although nobody asked for it.
 * The answer's own bytes. Throws for encodings that we do not know; `fail` gets what is found out later.
 */
function plain(response: Answer, fail?: (failure: ServerFailure) => void): Readable {
  const encoding = (response.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding === "" || encoding === "identity") return response;
  const decoder = decoderOf(encoding);
  if (!decoder) {
    throw new ServerFailure("foreign", `it answers in ${encoding}, which nobody asked for`);
  }
  decoder.on("error", () =>
    fail?.(new ServerFailure("cut", `the answer broke off, or its ${encoding} is damaged`)),
  );
  // pipe() does not hand on that the answer was cut: then nobody would ever end the decoder.
  response.on("error", (error) => decoder.destroy(error));
  return response.pipe(decoder);
}

function decoderOf(encoding: string): ReturnType<typeof createGunzip> | null {
  if (encoding === "gzip" || encoding === "x-gzip") return createGunzip();
  if (encoding === "deflate") return createInflate();
  return encoding === "br" ? createBrotliDecompress() : null;
}
