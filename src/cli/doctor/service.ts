/** Does the service answer, does it take the token, and how are its store and its broker? */
import { count } from "../../base/text.ts";
import { type Line, linesOf } from "./line.ts";

export interface AgentSeen {
  readonly agent: string;
  readonly machine: string;
  readonly version: string;
  readonly clockOffsetMs: number;
}

/** What /healthz said; fields of older services may be missing. */
export interface HealthSeen {
  readonly error?: string;
  readonly degraded?: string;
  readonly store?: string;
  readonly broker?: string;
  readonly version?: string;
  readonly nowMs?: number;
}

export interface ServiceSeen {
  /** null where none is configured and none is at the usual place. */
  readonly url: string | null;
  /** Where it was looked for. */
  readonly asked: string;
  readonly isGuessed: boolean;
  /** Why there was no answer; null where there was one. */
  readonly failure: string | null;
  /** Of /healthz. */
  readonly status: number;
  readonly health: HealthSeen | null;
  /** Of a request with the token. */
  readonly readStatus: number;
  readonly hasToken: boolean;
  /** null where this token may not see them. */
  readonly agents: readonly AgentSeen[] | null;
  /** The service's clock less ours; null where it did not say. */
  readonly clockOffsetMs: number | null;
}

const service = linesOf("service");
const store = linesOf("store");
const START = "faultline serve    # or systemctl status faultline-serve";

export function judgeService(seen: ServiceSeen): Line {
  const { url, failure, status, health, readStatus, agents } = seen;
  if (url === null)
    return service.none(
      `no service is set up: ${status === 0 ? "nothing" : "something else"} answers at ${seen.asked}, and no --server is given`,
    );
  if (!/^https?:\/\//i.test(url)) {
    const [, scheme, rest] = /^(?:([^:/]*):\/\/)?(.*)$/.exec(url)!;
    const says = scheme === undefined ? "has no scheme" : `begins with ${scheme}://`;
    return service.broken(
      `--server ${url} ${says}: a service speaks http, https, ws or wss, a broker nats or tls`,
      `faultline doctor --server http://${rest}`,
    );
  }
  if (failure !== null && isOtherProtocol(url, failure)) {
    const [says, scheme] = url.startsWith("https:")
      ? ["no TLS", "http"]
      : ["nothing but TLS", "https"];
    return service.broken(
      `${url} speaks ${says}, as it seems`,
      `faultline doctor --server ${url.replace(/^https?/, scheme)}    # and in the settings of the agents`,
    );
  }
  if (failure !== null)
    return service.broken(`${url} does not answer: ${failure}`, fixFor(failure));
  if (status === 421)
    return service.broken(
      `${url} refuses this host name`,
      `add ${hostOf(url)} to "allowedHosts" in the service's configuration`,
    );
  if (health === null || (status !== 200 && status !== 503))
    return service.broken(
      `${url} answers ${status}: it is something else than faultline serve`,
      "give --server the address that faultline serve prints at its start",
    );
  // Of a service that nobody named it is enough to know that it is well.
  if (readStatus === 401 && !(seen.isGuessed && !seen.hasToken))
    return service.broken(
      seen.hasToken ? `${url} does not know the token` : `${url} wants a token, and there is none`,
      'faultline doctor --token-file FILE    # one of "tokens" in its configuration (docs/guides/serve.md)',
    );
  if (health.error !== undefined)
    return service.broken(
      `${url} answers that it cannot work: ${health.store === "away" ? "see store" : health.error}`,
      "journalctl -u faultline-serve -n 50    # then restart it",
    );
  const unlisted = seen.hasToken
    ? "this token may not list its agents"
    : "--token-file FILE would list its agents";
  const who = agents === null ? unlisted : count(agents.length, "agent");
  return service.ok(`${url} answers, version ${health.version ?? "unknown"}, ${who}`);
}

/** `fault`: why a service could not use it from here; null where it could, or where a service has it. */
export function judgeStore(
  { url, health }: ServiceSeen,
  fault: { readonly message: string; readonly hint: string } | null = null,
): Line {
  if (fault !== null) return store.broken(fault.message, fault.hint);
  if (url === null || health === null) return store.none("not known without a service");
  const { store: state, degraded, error } = health;
  if (state === "full")
    return store.broken(
      degraded ?? "the data folder is full",
      "df -h    # make room, or set retention in the service's configuration",
    );
  if (state === "away")
    return store.broken(
      error ?? degraded ?? "the history cannot be reached",
      "curl -s http://CLICKHOUSE:8123/ping    # or look at the disk of the data folder",
    );
  return state === undefined
    ? store.none("this service is too old to say")
    : store.ok("the history takes what the service writes");
}

/** What Node says of an answer that is no TLS, and of a server that hangs up on what is no TLS. */
function isOtherProtocol(url: string, failure: string): boolean {
  return url.startsWith("https:")
    ? /EPROTO|wrong version number|packet length too long/i.test(failure)
    : /socket hang up|ECONNRESET/i.test(failure);
}

function fixFor(failure: string): string {
  if (/certificate has expired/i.test(failure))
    return 'renew the certificate that "tls" of the service\'s configuration names, and restart the service';
  if (/certificate|self.signed|issuer|altname/i.test(failure))
    return "faultline doctor --ca FILE    # the PEM of the CA; the name must be in the certificate";
  if (/ENOTFOUND|EAI_AGAIN/.test(failure))
    return "getent hosts NAME    # the name is not known here";
  if (/no answer/.test(failure)) return `${START}; a firewall may drop its port`;
  return START;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : url;
}
