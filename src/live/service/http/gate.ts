/** What is turned away before anybody looks for a route: other names, odd paths, pages of other sites. */
import type { IncomingMessage } from "node:http";
import { type Authorizer, Denial } from "./authorize.ts";
import type { HttpLimits } from "./limits.ts";

const METHODS = ["GET", "HEAD", "POST"];
/** Names of jobs, ids of incidents and actions; no percent sign, so nothing is decoded twice. */
const SEGMENT = /^[A-Za-z0-9_.~:@+=,!-]{1,256}$/;

/** null: let it in. `mayDelete`: there are paths that take it. */
export function turnAway(
  request: IncomingMessage,
  auth: Authorizer,
  limits: HttpLimits,
  scheme: "http" | "https",
  mayDelete = false,
): Denial | null {
  const { method = "", url = "", headers } = request;
  if (url.length > limits.urlBytes)
    return new Denial(414, `the URL is longer than ${limits.urlBytes} bytes`);
  const methods = mayDelete ? [...METHODS, "DELETE"] : METHODS;
  if (!methods.includes(method)) {
    const allow = methods.join(", ");
    return new Denial(405, `only ${allow} are known here`, { allow });
  }
  if (!url.startsWith("/")) return new Denial(400, "the request must name a path");
  if (sameHeaders(request, "host") > 1)
    return new Denial(400, "there is more than one Host header");
  if (!auth.knowsHost(request))
    return new Denial(421, "the service does not answer under this name: see allowedHosts");
  if (!isPlainPath(url)) return new Denial(404, "there is nothing at this path");
  if (method === "POST" || method === "DELETE") return postFault(request, scheme);
  if (Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined)
    return new Denial(400, `a ${method} request has no body`);
  return isOtherSite(request) ? new Denial(403, "pages of other sites may not read this") : null;
}

function sameHeaders({ rawHeaders }: IncomingMessage, name: string): number {
  let found = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]!.toLowerCase() === name) found++;
  return found;
}

/** Judged as it came, for URL parsers fold dots and backslashes away; each part by itself, for %2F is no slash. */
export function isPlainPath(url: string): boolean {
  const [path = ""] = url.split(/[?#]/, 1);
  return path === "/" || path.slice(1).split("/").every(isPlainSegment);
}

function isPlainSegment(segment: string): boolean {
  try {
    const plain = decodeURIComponent(segment);
    return SEGMENT.test(plain) && plain !== "." && plain !== "..";
  } catch {
    return false;
  }
}

/** A page of another site can send a form unasked, but neither this type nor its own name for ours. */
function postFault(request: IncomingMessage, scheme: "http" | "https"): Denial | null {
  const { headers } = request;
  if (headers.origin !== undefined && !isOurs(headers.origin, headers.host ?? "", scheme))
    return new Denial(403, "pages of other sites may not do this");
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none")
    return new Denial(403, "pages of other sites may not do this");
  if (!/^application\/json *(;|$)/i.test(headers["content-type"] ?? ""))
    return new Denial(415, "the content-type must be application/json");
  return null;
}

/** A proxy in front may add TLS: https is ours, too. */
function isOurs(origin: string, host: string, scheme: "http" | "https"): boolean {
  const [, said = "", rest = ""] = /^(https?):\/\/([^/?#@]+)$/i.exec(origin) ?? [];
  const theirs = said.toLowerCase();
  if (theirs !== scheme && theirs !== "https") return false;
  const port = theirs === "https" ? /:443$/ : /:80$/;
  return rest.toLowerCase().replace(port, "") === host.toLowerCase().replace(port, "");
}

/** Browsers say where a request comes from. Following a link is fine, reading from a script elsewhere is not. */
function isOtherSite({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== "cross-site" && site !== "same-site") return false;
  return headers["sec-fetch-mode"] !== "navigate";
}
