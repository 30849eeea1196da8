/**
 * What exporters call a machine. Every exporter has words of its own (a host name, an address, the name of its pod), so
 * that one machine comes under several names: labels and info metrics tell which of them are one.
 */

/** A label of a machine's series that may name it, too: "instance" → "10.40.21.32". */
export interface NameClaim {
  readonly label: string;
  /** Without port. */
  readonly value: string;
}

/** Names that an info metric puts on one machine; the first is the machine's own name. */
export interface NameLink {
  readonly names: readonly string[];
  /** A pod that runs on it: "monitoring/dcgm-exporter-d66sz"; null where none is known. */
  readonly pod: string | null;
  /** "node_uname_info". */
  readonly from: string;
}

/** One machine and all that it is called. */
export interface JoinedName {
  readonly machine: string;
  readonly names: readonly string[];
  /** Where the name comes from: "instance", "node_uname_info", "DNS suffix". */
  readonly by: readonly string[];
  /** Nothing but an exporter's pod is known of it: what it does is no sign of a machine's death. */
  readonly isPod: boolean;
}

export function isAddress(name: string): boolean {
  return (
    /^\d{1,3}(?:\.\d{1,3}){3}$/.test(name) || (name.includes(":") && /^[[\]\da-f:.%]+$/i.test(name))
  );
}

/** Pods of daemon sets end in five letters of Kubernetes' own alphabet, those of deployments in a hash before them. */
const POD_SUFFIX = /-[bcdfghjklmnpqrstvwxz2456789]{5}$/;
const POD_HASH = /-[0-9a-f]{7,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$/;
const EXPORTER = /exporter|dcgm|prometheus|telemetry|monitoring|otel|agent/i;

/** Whether it is the name of an exporter's pod, which is no machine's. */
export function isPodName(name: string): boolean {
  return (EXPORTER.test(name) && POD_SUFFIX.test(name)) || POD_HASH.test(name);
}

/** Whether people would call a machine so. */
export function isProperName(name: string): boolean {
  return name !== "" && !isAddress(name) && !isPodName(name) && name !== "localhost";
}

/** "node003.cluster.local" → "node003"; an address has no short name. */
export function shortName(machine: string): string {
  return isAddress(machine) ? machine : machine.split(".")[0]!;
}

/**
 * A machine as somebody spells it → the name under which it is known; null where it is none of these. Case does not
 * count, nor whether the domain is said: unless two domains have it, for node1 is then neither for sure.
 */
export function knownMachine(spelled: string, known: Iterable<string>): string | null {
  const asked = spelled.toLowerCase();
  const alike = [...known].filter((name) => shortName(name).toLowerCase() === shortName(asked));
  const same = alike.includes(spelled)
    ? spelled
    : alike.find((name) => name.toLowerCase() === asked);
  if (same !== undefined) return same;
  const whole = [asked, ...alike.map((name) => name.toLowerCase())];
  const domains = new Set(whole.filter((name) => name !== shortName(name)));
  return domains.size <= 1 ? (alike[0] ?? null) : null;
}

/** Of known names, those that begin most alike. */
export function nearMachines(spelled: string, known: Iterable<string>, most: number): string[] {
  const asked = spelled.toLowerCase();
  const begins = (name: string): number => {
    let at = 0;
    while (at < asked.length && name[at]?.toLowerCase() === asked[at]) at++;
    return at;
  };
  return [...new Set(known)]
    .map((name) => ({ name, alike: begins(name) }))
    .sort((a, b) => b.alike - a.alike || (a.name < b.name ? -1 : 1))
    .slice(0, most)
    .map(({ name }) => name);
}
