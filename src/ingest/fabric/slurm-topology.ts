/** Slurm's topology.conf (topology.conf(5), topology/tree): `SwitchName=leaf1 Nodes=node[001-016,020]`. */
import { count } from "../../base/text.ts";
import type { Reading } from "../../model/reading.ts";
import { LineSink } from "../line-sink.ts";
import type { Head, Reader } from "../reader.ts";
import { PortList } from "./port-list.ts";

const FORMAT = "slurm-topology";
const MAX_LINE_BYTES = 1 << 18;
/** Of one list: more is a typing error. */
const MAX_HOSTS = 1 << 16;

export const slurmTopology: Reader = {
  format: FORMAT,
  sniff: ({ text }: Head): boolean =>
    /^\s*SwitchName=\S+\s+(?:\w+=\S+\s+)*(?:Nodes|Switches)=\S/im.test(text),
  open: (file) => new TopologySink(file),
};

class TopologySink extends LineSink {
  readonly #list: PortList;
  #bad = 0;

  constructor(file: string) {
    super(file, MAX_LINE_BYTES);
    this.#list = new PortList(file, FORMAT);
  }

  finish(): Reading {
    const wrong = this.#bad > 0 ? [`${count(this.#bad, "list")} of nodes cannot be read`] : [];
    return this.#list.reading(wrong);
  }

  line(line: string): void {
    const [, leaf] = /^\s*SwitchName=(\S+)/i.exec(line) ?? [];
    const [, nodes] = /\sNodes=(\S+)/i.exec(line) ?? [];
    if (leaf === undefined || nodes === undefined) return;
    const machines = hostsOf(nodes);
    if (!machines) this.#bad++;
    for (const machine of machines ?? []) this.#list.add({ machine, leaf });
  }
}

/** "node[001-003,7],login" → node001, node002, node003, node7, login; null where it is no such list. */
function hostsOf(text: string): string[] | null {
  if (/\[[^\]]*$/.test(text)) return null;
  const hosts: string[] = [];
  for (const item of text.match(/(?:[^,[\]]|\[[^\]]*\])+/g) ?? []) {
    const [, prefix, inside, suffix] = /^([^[\]]*)(?:\[([^\]]*)\])?([^[\]]*)$/.exec(item) ?? [];
    if (prefix === undefined) return null;
    if (inside === undefined) hosts.push(item);
    for (const range of inside?.split(",") ?? []) {
      const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
      if (from === undefined) return null;
      const last = Number(to ?? from);
      if (last - Number(from) + hosts.length >= MAX_HOSTS) return null;
      for (let n = Number(from); n <= last; n++)
        hosts.push(`${prefix}${String(n).padStart(from.length, "0")}${suffix}`);
    }
  }
  return hosts;
}
