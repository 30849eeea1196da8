/**
 * Who is like whom. Machines of different pipeline stages are not alike (in ByteDance's traces the last stage is twice
 * as slow as the first while no worker differs by 1 % from its own stage), nor are machines of different hardware.
 */

export interface RoleHints {
  /** Machine → what it does in the job ("stage 2"), where the job's layout tells. */
  readonly stageOf?: ReadonlyMap<string, string>;
}

export const ALL_MACHINES = "all machines";

export function rolesOf(
  machines: readonly string[],
  hardware: readonly (string | null)[],
  { stageOf }: RoleHints,
): { role: Int32Array; roles: string[] } {
  const models = new Set(hardware.filter((model) => model !== null));
  const names = machines.map((machine, m) => {
    const parts = [
      stageOf?.get(machine) ?? "",
      models.size > 1 ? (hardware[m] ?? "unknown hardware") : "",
    ];
    return parts.filter((part) => part !== "").join(", ") || ALL_MACHINES;
  });
  const roles = [...new Set(names)].sort();
  const numberOf = new Map(roles.map((name, r) => [name, r]));
  return { role: Int32Array.from(names, (name) => numberOf.get(name)!), roles };
}

const membersCache = new WeakMap<Int32Array, number[][]>();

function membersOf(role: Int32Array): number[][] {
  let members = membersCache.get(role);
  if (!members) {
    members = [];
    for (let m = 0; m < role.length; m++) (members[role[m]!] ??= []).push(m);
    membersCache.set(role, members);
  }
  return members;
}

/** Some of the others in a machine's role, evenly spread; of everybody where it is nearly alone in it. */
export function peersOf(role: Int32Array, machine: number, most: number): number[] {
  const alike = membersOf(role)[role[machine]!]!;
  const all = alike.length > 2 ? alike : [...role.keys()];
  const every = Math.max(1, Math.floor(all.length / most));
  const peers: number[] = [];
  for (let i = 0; i < all.length; i += every) if (all[i] !== machine) peers.push(all[i]!);
  return peers;
}
