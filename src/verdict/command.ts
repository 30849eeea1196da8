/** Commands that can be pasted as they are: on which machine, for which GPU, process or NIC. */
import type { Job } from "../model/job.ts";
import { isPodName } from "../model/machine-names.ts";
import type { Suspect } from "../model/verdict.ts";
import { deviceOf, machinesBetween } from "./who.ts";

/** A plain host name, which can be no option of ssh and no syntax of a shell. */
const HOST = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/;
const DEVICE = /^[A-Za-z0-9][\w.:-]{0,63}$/;

/**
 * `template`: "nvidia-smi{gpu} -q", with {gpu} → " -i 5", {pid} → "705", {nic} → "mlx5_3", {machine} → "node003"; what is not known stays a
 * placeholder that a person sees, or goes where the command says the same without it.
 */
export function commandFor(
  job: Job,
  suspect: Suspect,
  template: string,
  gpu: number | null,
): string {
  const info = suspect.ranks.length === 1 ? job.ranks.get(suspect.ranks[0]!) : undefined;
  const index = info?.gpu ?? gpu;
  const nic = suspect.type === "nic" && suspect.name !== null ? suspect.name : info?.nic;
  const device = nic ? deviceOf(nic) : null;
  const command = template
    .replaceAll("{gpu}", index === null ? "" : ` -i ${index}`)
    .replaceAll("{pid}", info?.pid ? String(info.pid) : "<pid>")
    .replaceAll("{nic}", device !== null && DEVICE.test(device) ? ` ${device}` : "");
  const machine =
    suspect.machine ?? (nic?.includes("/") ? nic.slice(0, nic.lastIndexOf("/")) : null);
  const ends = suspect.type === "link" ? (machinesBetween(job, suspect).machines ?? []) : [];
  const machines = machine !== null ? [machine] : ends.length === 2 ? ends : [];
  const isHost = (name: string): boolean => HOST.test(name) && !isPodName(name);
  // From here: whether a shell on it would answer is the question.
  if (command.includes("{machine}")) {
    const [name] = machines;
    return command.replaceAll("{machine}", name !== undefined && isHost(name) ? name : "<machine>");
  }
  if (machines.length === 0 || !machines.every(isHost)) return command;
  // What the far shell must see stays in quotes here; no template has a quote of this kind in it.
  const quote = /[|;&<>*$]/.test(command.replace("<pid>", "")) ? "'" : "";
  return machines.map((name) => `ssh ${name} ${quote}${command}${quote}`).join("; ");
}
