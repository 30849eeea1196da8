/**
 * Under which names the service answers. A page in somebody's browser can give its own name the address of this
 * service (DNS rebinding) and then read everything as its own origin; what it cannot change is the Host header.
 */
import { isIP } from "node:net";

/** "127.0.0.1", "localhost", "::1": reached from this machine only. */
export function isLoopback(host: string): boolean {
  const name = bare(host);
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

const WILDCARDS = new Set(["0.0.0.0", "::", ""]);

/** Whether a Host header names this service; `localAddress` is the one that the connection came to. */
export type HostCheck = (header: string | undefined, localAddress: string | undefined) => boolean;

export function knownHosts(host: string, allowed: readonly string[]): HostCheck {
  const names = new Set(allowed.map(bare));
  const isWildcard = WILDCARDS.has(bare(host));
  if (!isWildcard) names.add(bare(host));
  return (header, localAddress) => {
    const name = nameOf(header);
    if (name === null) return false;
    if (isLoopback(name) || names.has(name)) return true;
    // An address is no name that somebody could point elsewhere: where all are bound, the one in use is ours.
    return isWildcard && isIP(name) !== 0 && name === bare(localAddress ?? "");
  };
}

/** The name in a Host header, without its port; null where it is none. */
export function nameOf(header: string | undefined): string | null {
  const [, six, name] =
    /^(?:\[([0-9a-fA-F:.]{2,45})\]|([A-Za-z0-9._-]{1,253}))(?::\d{1,5})?$/.exec(header ?? "") ?? [];
  if (six !== undefined) return isIP(six) === 6 ? bare(six) : null;
  return name === undefined ? null : bare(name);
}

/** One spelling of a name: small letters, no brackets, no dot at its end, no IPv4 inside IPv6. */
function bare(host: string): string {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return name.replace(/\.$/, "").replace(/^::ffff:(?=\d+\.)/, "");
}
