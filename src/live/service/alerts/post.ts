/** One POST to somebody else's server: bounded in time, in what is read of the answer, and in where it may lead. */
import { cutText, harmless } from "../../../base/text.ts";
import type { Fetch } from "./types.ts";

export const MOST_ANSWER_BYTES = 64 << 10;
const MOST_PAUSE_MS = 300_000;

export type PostResult =
  | { readonly ok: true; readonly answer: string }
  | {
      readonly ok: false;
      /** "again": may work later. "never": the receiver understood and refused. "silent": it may have been taken. */
      readonly how: "again" | "never" | "silent";
      readonly why: string;
      /** How long the receiver wants to be left alone; 0 where it does not say. */
      readonly pauseMs: number;
    };

export async function post(
  fetch: Fetch,
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  timeoutMs: number,
  closing?: AbortSignal,
): Promise<PostResult> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const timer = setTimeout(abort, timeoutMs);
  closing?.addEventListener("abort", abort);
  if (closing?.aborted === true) abort();
  try {
    return await exchange();
  } finally {
    clearTimeout(timer);
    closing?.removeEventListener("abort", abort);
  }

  async function exchange(): Promise<PostResult> {
    let response: Response;
    try {
      // Where a redirect leads was not configured by anybody, and secrets in headers would go along.
      // A connection of its own: one that was kept may end just then, and nobody would know whether it had arrived.
      response = await fetch(url, {
        method: "POST",
        body,
        headers: {
          "content-type": "application/json",
          "user-agent": "faultline",
          connection: "close",
          ...headers,
        },
        redirect: "manual",
        signal: controller.signal,
      });
    } catch (error) {
      if (closing?.aborted === true) return failed("silent", "was left, for the service stops");
      if (controller.signal.aborted)
        return failed("silent", `gave no answer within ${seconds(timeoutMs)} s`);
      return isBeforeSending(error)
        ? failed("again", `cannot be reached: ${reasonOf(error)}`)
        : failed("silent", `broke the connection: ${reasonOf(error)}`);
    }
    const answer = await readBounded(response);
    const { status } = response;
    if (status >= 200 && status < 300) return { ok: true, answer };
    if (status >= 300 && status < 400)
      return failed("never", `answered ${status}: redirects are not followed`);
    const said = answer === "" ? "" : `: ${cutText(answer, 200)}`;
    const isLater = status >= 500 || status === 429 || status === 408 || status === 425;
    return {
      ...failed(isLater ? "again" : "never", `answered ${status}${said}`),
      pauseMs: pauseOf(response.headers.get("retry-after")),
    };
  }
}

/** Where a receiver is, without what may be secret in its path (Slack's hooks are nothing but secret). */
export function originOf(url: string): string {
  try {
    return harmless(new URL(url).origin);
  } catch {
    return "a malformed address";
  }
}

function failed(
  how: "again" | "never" | "silent",
  why: string,
): Extract<PostResult, { ok: false }> {
  return { ok: false, how, why, pauseMs: 0 };
}

/** What has come when enough is read or the time is over: a status counts however long the rest takes. */
async function readBounded(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    while (size < MOST_ANSWER_BYTES) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value.subarray(0, MOST_ANSWER_BYTES - size));
      size += value.length;
    }
  } catch {
    // Cut short: the beginning is enough.
  }
  reader.cancel().catch(() => undefined);
  return harmless(Buffer.concat(parts).toString("utf8").trim());
}

/** No connection, no message: these are safe to repeat whatever the receiver does with repetitions. */
function isBeforeSending(error: unknown): boolean {
  const code = codeOf(error);
  return (
    code === null ||
    /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT|CERT_|ERR_TLS|DEPTH_|SELF_|UNABLE_)/.test(
      code,
    )
  );
}

function codeOf(error: unknown): string | null {
  for (let at: unknown = error, i = 0; at instanceof Error && i < 4; at = at.cause, i++) {
    const { code } = at as { code?: unknown };
    if (typeof code === "string") return code;
    if (at instanceof AggregateError && at.errors.length > 0) return codeOf(at.errors[0]);
  }
  return null;
}

function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code !== null) return harmless(code);
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cutText(harmless(inner instanceof Error ? inner.message : String(inner)), 200);
}

function pauseOf(retryAfter: string | null): number {
  const wanted = retryAfter === null ? 0 : Number(retryAfter) * 1000;
  return Number.isFinite(wanted) ? Math.min(Math.max(0, wanted), MOST_PAUSE_MS) : 0;
}

function seconds(ms: number): string {
  return String(Number((ms / 1000).toPrecision(2)));
}
