/** A line of a machine's kernel log: it names machines, process ids and PCI addresses, never ranks. */
import type { LogFailure } from "./log.ts";
import { shortName } from "./machine-names.ts";

/** Whether the line is from this machine's log: the file's name, its folder, or the line as syslog prints it says so. */
export function isLogOf({ file, text }: Pick<LogFailure, "file" | "text">, machine: string) {
  const short = shortName(machine);
  const parts = file.split(/[/\\]/).flatMap((part) => [part, ...part.split(/[._\s]/)]);
  // syslog and journalctl print it in front of each line.
  return parts.includes(machine) || parts.includes(short) || text.split(/\s/, 8).includes(short);
}
