/**
 * What `ibnetdiscover` and `iblinkinfo` print of an InfiniBand fabric (rdma-core: infiniband-diags/ibnetdiscover.c,
 * iblinkinfo.c). Both list, for each switch, what is plugged into its ports, and for each adapter the switch it hangs on.
 * An adapter describes itself as "HOST NIC"; a managed switch as "MF0;NAME:MODEL/U1".
 */
import type { Reading } from "../../model/reading.ts";
import { LineSink } from "../line-sink.ts";
import type { Head, Reader } from "../reader.ts";
import { PortList } from "./port-list.ts";

const FORMAT = "infiniband-links";
const MAX_LINE_BYTES = 1 << 13;
const MAX_SWITCHES = 1 << 16;
/** Each is told by both its ends. */
const MAX_LINKS = 1 << 21;

const DISCOVERED = /^(Switch|Ca|Rt)\s+\d+\s+"[SHR]-([0-9a-f]+)"\s*#\s*"([^"]*)"/;
/** A port of a switch that an adapter hangs on, and of an adapter that hangs on a switch. */
const DISCOVERED_ADAPTER = /^\[\d+\][^"]*"H-[0-9a-f]+"\[\d+\][^"]*#\s*"([^"]*)"/;
const DISCOVERED_SWITCH = /^\[\d+\][^"]*"S-([0-9a-f]+)"\[\d+\][^"]*#[^"]*"([^"]*)"/;
const LINK_HEAD = /^(Switch|CA):\s+(?:0x([0-9a-f]+)\s+)?(.*):\s*$/;
const LINK =
  /^\s*(?:0x([0-9a-f]+)\s+)?(?:"\s*([^"]*?)\s*"\s+)?(\d+)\s+\d+\[[^\]]*\]\s*==\(([^)]*)\)==>\s*(?:0x([0-9a-f]+)\s+)?(\d+)\s+\d+\[[^\]]*\]\s*"\s*([^"]*?)\s*"/;

export const infinibandLinks: Reader = {
  format: FORMAT,
  sniff({ text }: Head): boolean {
    return (
      /^(?:Switch|Ca)\s+\d+\s+"[SH]-[0-9a-f]+"/m.test(text) ||
      /\d+\[[^\]]*\]\s*==\([^)]*\/[^)]*\)==>/.test(text)
    );
  },
  open: (file) => new LinksSink(file),
};

interface Switch {
  readonly id: string;
  readonly described: string;
}

type Node = { readonly adapter: string } | Switch | null;

class LinksSink extends LineSink {
  readonly #list: PortList;
  readonly #links: { readonly adapter: string; readonly id: string }[] = [];
  /** By id: what it says of itself. */
  readonly #switches = new Map<string, string>();
  /** The node whose ports are being listed. */
  #node: Node = null;

  constructor(file: string) {
    super(file, MAX_LINE_BYTES);
    this.#list = new PortList(file, FORMAT);
  }

  finish(): Reading {
    const named = new Map<string, number>();
    for (const described of this.#switches.values()) {
      const name = switchName(described);
      named.set(name, (named.get(name) ?? 0) + 1);
    }
    for (const { adapter, id } of this.#links) {
      const host = hostOf(adapter);
      const name = switchName(this.#switches.get(id) ?? "");
      // Switches that nobody has given a name are all called alike.
      const leaf = name === "" || named.get(name)! > 1 ? `${name} ${id}`.trim() : name;
      if (host) this.#list.add({ ...host, leaf });
    }
    return this.#list.reading([]);
  }

  line(line: string): void {
    if (line.startsWith("vendid=")) this.#node = null;
    const found = DISCOVERED.exec(line);
    if (found) {
      const [, kind, guid, described] = found as unknown as [string, string, string, string];
      this.#node = kind === "Switch" ? this.#switch(guid, described) : { adapter: described };
      return;
    }
    const head = LINK_HEAD.exec(line);
    if (head) {
      const [, kind, guid, described] = head as unknown as [string, string, string, string];
      this.#node =
        kind === "Switch" && guid ? this.#switch(guid, described) : { adapter: described };
      return;
    }
    if (line.startsWith("[")) this.#discoveredPort(line);
    else this.#link(line);
  }

  #discoveredPort(line: string): void {
    const node = this.#node;
    if (!node) return;
    if ("adapter" in node) {
      const [, guid, described] = DISCOVERED_SWITCH.exec(line) ?? [];
      if (guid !== undefined) this.#add(node.adapter, this.#switch(guid, described ?? ""));
    } else {
      const [, adapter] = DISCOVERED_ADAPTER.exec(line) ?? [];
      if (adapter !== undefined) this.#add(adapter, node);
    }
  }

  /** One line a link, as `iblinkinfo` and `iblinkinfo --line` print them. */
  #link(line: string): void {
    const found = LINK.exec(line);
    if (!found || !found[4]!.includes("LinkUp")) return;
    const [, guid, own, , , farGuid, farLid, far] = found;
    const node: Node =
      own !== undefined && guid !== undefined
        ? hostOf(own)
          ? { adapter: own }
          : this.#switch(guid, own)
        : this.#node;
    if (!node) return;
    if ("adapter" in node) {
      if (!hostOf(far!)) this.#add(node.adapter, this.#switch(farGuid ?? `lid ${farLid}`, far!));
    } else this.#add(far!, node);
  }

  #switch(id: string, described: string): Switch {
    const plain = id.replace(/^0+(?=[0-9a-f])/, "");
    if (this.#switches.size < MAX_SWITCHES) this.#switches.set(plain, described);
    return { id: plain, described };
  }

  #add(adapter: string, { id }: Switch): void {
    if (this.#links.length < MAX_LINKS) this.#links.push({ adapter, id });
  }
}

/** "node17 mlx5_0", "node17 HCA-1 (Mellanox HCA)". SHARP's aggregation nodes are adapters of no machine. */
export function hostOf(described: string): { machine: string; nic: string } | null {
  const [, machine, nic] =
    /^\s*(\S+)\s+([A-Za-z]\w*?_\d+|HCA-\d+|ibp\S+|ib\d+)(?:\s*\(.*\))?\s*$/.exec(described) ?? [];
  return machine === undefined || nic === undefined ? null : { machine, nic };
}

/** "MF0;leaf-07:MQM9700/U1" → "leaf-07"; the leaf of a director, "MF0;core:CS8500/L07/U1" → "core/L07". */
export function switchName(described: string): string {
  const managed = /^MF0;([^:]+):[^/]*(?:\/(L\d+))?/.exec(described.trim());
  if (!managed) return described.trim();
  return managed[2] === undefined ? managed[1]! : `${managed[1]}/${managed[2]}`;
}
