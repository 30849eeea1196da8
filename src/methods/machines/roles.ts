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
  return { role: Int32Array.from(names, (name) => roles.indexOf(name)), roles };
}

/** Everybody else in a machine's role; everybody else where it is alone in it. */
export function peersOf(role: Int32Array, machine: number): number[] {
  const others = [...role.keys()].filter((m) => m !== machine);
  const alike = others.filter((m) => role[m] === role[machine]);
  return alike.length >= 2 ? alike : others;
}
