/** Requests to a Kubernetes API server with a service account, bounded in time and size; and its refusals in plain words. */
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { parseFields } from "../../../../base/json.ts";
import { errorText } from "../../../../base/errors.ts";
import { cutText, harmless } from "../../../../base/text.ts";

export interface ApiAccess {
  /** https://HOST:PORT */
  readonly server: string;
  /** A file is read again for each request: the cluster replaces tokens of service accounts every hour. */
  readonly token: { readonly file: string } | { readonly text: string };
  /** Path of the PEM of the cluster's authority; null for the system's. */
  readonly ca: string | null;
}

export interface ApiAnswer {
  readonly status: number;
  /** A JSON object; {} where the answer is none. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** No answer. `isSent`: the request may have been carried out. */
export class NoAnswer extends Error {
  readonly isSent: boolean;
  constructor(message: string, isSent: boolean) {
    super(message);
    this.name = "NoAnswer";
    this.isSent = isSent;
  }
}

export type ApiCall = (
  method: "GET" | "PATCH" | "POST",
  path: string,
  body?: unknown,
) => Promise<ApiAnswer>;

const MOST_BYTES = 16 << 20;

/** Rejects with NoAnswer only. */
export function apiCall({ server, token, ca }: ApiAccess, timeoutMs: number): ApiCall {
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      let isSent = false;
      const fail = (why: string): void =>
        reject(new NoAnswer(`the API server ${originWords(server)} ${why}`, isSent));
      try {
        const authorization = `Bearer ${"text" in token ? token.text : readFileSync(token.file, "utf8").trim()}`;
        const sent = request(
          new URL(path, server),
          {
            method,
            ...(ca === null ? {} : { ca: readFileSync(ca) }),
            // One that was kept may end just then, and nobody would know whether the request had arrived.
            agent: false,
            timeout: timeoutMs,
            headers: {
              authorization,
              accept: "application/json",
              "user-agent": "faultline",
              ...(body === undefined
                ? {}
                : {
                    "content-type":
                      method === "PATCH" ? "application/merge-patch+json" : "application/json",
                  }),
            },
            signal: AbortSignal.timeout(timeoutMs),
          },
          (response) => {
            const parts: Buffer[] = [];
            let size = 0;
            response.on("data", (part: Buffer) => {
              size += part.length;
              if (size > MOST_BYTES) response.destroy(new Error("sent too much"));
              else parts.push(part);
            });
            response.on("error", (error) => fail(`broke off: ${wordsOf(error)}`));
            response.on("end", () =>
              resolve({
                status: response.statusCode ?? 0,
                body: parseFields(Buffer.concat(parts).toString("utf8")) ?? {},
              }),
            );
          },
        );
        sent.on("error", (error) => fail(`cannot be reached: ${wordsOf(error)}`));
        sent.on("timeout", () => sent.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)));
        sent.once("socket", (socket) => socket.once("secureConnect", () => (isSent = true)));
        sent.end(body === undefined ? undefined : JSON.stringify(body));
      } catch (error) {
        fail(`cannot be asked: ${wordsOf(error)}`);
      }
    });
}

/** Why the API server refused, for people; `what`: "patch nodes". */
export function refusalWords({ status, body }: ApiAnswer, what: string): string {
  const message =
    typeof body["message"] === "string" ? cutText(harmless(body["message"]), 300) : "";
  const said = message === "" ? "" : `: ${message}`;
  switch (status) {
    case 401:
      return `the API server does not accept the service account's token (401)${said}`;
    case 403:
      return `the service account may not ${what} (403)${said}; actions.enabled of the Helm chart grants it`;
    case 404:
      return `the API server knows no such object (404)${said}`;
    case 409:
      return `somebody else changes the object at the same time (409)${said}`;
    case 429:
      return `the API server does not allow it now (429)${said}`;
    default:
      return `the API server answered ${status}${said}`;
  }
}

function wordsOf(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  if (name === "TimeoutError" || name === "AbortError") return "no answer in time";
  return typeof code === "string" ? harmless(code) : cutText(harmless(errorText(error)), 200);
}

function originWords(server: string): string {
  return harmless(new URL(server).host);
}
