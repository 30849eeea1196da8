/** What went wrong at a server, told apart by what can be done about it. */
import { UserError } from "../../base/errors.ts";

export type FailureKind =
  /** Nothing answers: refused, unknown host, TLS. */
  | "unreachable"
  /** It answers too slowly, or stops in the middle. */
  | "timeout"
  | "cut"
  | "auth"
  | "redirect"
  | "not-found"
  /** The user asked for a way that it does not have. */
  | "no-such-way"
  /** An answer that is not of this API: a proxy's page. */
  | "foreign"
  /** The server does not understand the query. */
  | "bad-query"
  /** More than the server is willing to load at once. */
  | "too-much"
  | "busy"
  | "aborted";

export class ServerFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string) {
    super(message);
    this.name = "ServerFailure";
    this.kind = kind;
  }
}

const HINTS: Readonly<Record<FailureKind, string>> = {
  unreachable:
    "Check the URL, and that the server can be reached from this machine (try it with curl).",
  timeout: "Ask for a shorter time, fewer machines (--match), or allow more time.",
  cut: "Try again; where it happens again, ask for a shorter time or fewer machines (--match).",
  auth: "Give credentials: --header 'Authorization: Bearer …', or http://user:password@host in the URL.",
  redirect: "Give the URL that it leads to; a login page in front of the server needs a token.",
  "not-found":
    "Give the URL under which /api/v1/query answers, with its prefix if there is one (http://host:9090/prometheus).",
  "no-such-way": "Leave --via out: the best way is found by itself.",
  foreign: "Give the URL of the Prometheus API itself: http://host:9090, not that of a web page.",
  "bad-query":
    'Matchers are written job="train",cluster=~"a.*"; patterns are RE2 and match whole values.',
  "too-much": "Ask for a shorter time or fewer machines (--match).",
  busy: "Try again later, or ask another replica.",
  aborted: "It was interrupted.",
};

/** `where` is the server as the user knows it. */
export function toUserError(failure: unknown, where: string): Error {
  if (!(failure instanceof ServerFailure)) {
    return failure instanceof Error ? failure : new Error(String(failure));
  }
  const exitCode = failure.kind === "bad-query" || failure.kind === "no-such-way" ? 2 : 3;
  return new UserError(`${where}: ${failure.message}`, HINTS[failure.kind], exitCode);
}

/** Of Node's own error codes. */
export function ofNetworkError(error: unknown): ServerFailure {
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (code === "ECONNREFUSED") return new ServerFailure("unreachable", "connection refused");
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return new ServerFailure("unreachable", "no such host");
  }
  if (code === "EHOSTUNREACH" || code === "ENETUNREACH") {
    return new ServerFailure("unreachable", "no route to the host");
  }
  if (code === "ETIMEDOUT") return new ServerFailure("timeout", "no answer in time");
  if (code === "ECONNRESET" || code === "EPIPE" || message === "aborted") {
    return new ServerFailure("cut", "the connection broke off");
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL") || code.startsWith("ERR_TLS")) {
    return new ServerFailure("unreachable", `no TLS connection (${code}); is it http, not https?`);
  }
  if (/CERT|SIGNATURE|SELF_SIGNED/.test(code)) {
    const trust = "NODE_EXTRA_CA_CERTS=file.pem trusts your own authority";
    return new ServerFailure("unreachable", `its certificate is not trusted (${code}); ${trust}`);
  }
  if (code.startsWith("HPE_")) return new ServerFailure("foreign", "it does not speak HTTP");
  return new ServerFailure("unreachable", message || code);
}

/** Of an answer's status and the beginning of its text. */
export function ofStatus(status: number, text: string, location: string): ServerFailure {
  const words = wordsOf(text);
  if (status === 401 || status === 403) {
    return new ServerFailure("auth", `it refuses access (${status})${words && `: ${words}`}`);
  }
  if (status >= 300 && status < 400) {
    return new ServerFailure("redirect", `it redirects to ${location || "another place"}`);
  }
  // VictoriaMetrics says 400 for paths that it lacks, and 422 for patterns that are none.
  if (status === 404 || status === 405 || /unsupported path/.test(words)) {
    return new ServerFailure("not-found", `there is no Prometheus API (${status})`);
  }
  if (status === 400 || (status === 422 && /regexp|parse/.test(words))) {
    return new ServerFailure("bad-query", words || "it rejects the query (400)");
  }
  if (status === 413 || (status === 422 && /too many|limit|exceed/i.test(words))) {
    return new ServerFailure("too-much", words || `too much at once (${status})`);
  }
  if (/timed out|timeout|deadline/i.test(words) || status === 504) {
    return new ServerFailure("too-much", words || `it gave up (${status})`);
  }
  if (status === 429 || status >= 500) {
    return new ServerFailure("busy", words || `it cannot answer now (${status})`);
  }
  return new ServerFailure("foreign", words || `an answer that is not understood (${status})`);
}

const MOST_WORDS = 300;

/** The "error" of an API answer; of other texts the first line, unless it is a page. */
function wordsOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === "string") return error.slice(0, MOST_WORDS);
  } catch {
    // Not JSON: a proxy, or Go's http.Error.
  }
  const line = text.trim().split("\n", 1)[0]!;
  return /^[<{[]/.test(line) ? "" : line.slice(0, MOST_WORDS);
}
