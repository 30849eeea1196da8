/**
 * NetBox's interfaces and devices (`GET /api/dcim/interfaces/`, `/api/dcim/devices/`): an interface names its device and the
 * one at the other end of the cable, a device its rack. Which of two is the switch is not said: it is the one with more
 * neighbours.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { fieldsOf, type Fields } from "../../base/json.ts";
import type { Head, Reader } from "../reader.ts";
import { JsonRowsSink, textOf } from "./json-rows.ts";
import { PortList } from "./port-list.ts";

const FORMAT = "netbox";
const MAX_LINKS = 1 << 20;

interface End {
  readonly device: string;
  readonly port: string;
}

export const netbox: Reader = {
  format: FORMAT,
  sniff({ text }: Head): boolean {
    if (!/^\s*[[{]/.test(text)) return false;
    const isInterfaces = text.includes('"connected_endpoints"') && text.includes('"device"');
    return isInterfaces || (text.includes('"device_type"') && text.includes('"rack"'));
  },
  open(file) {
    const list = new PortList(file, FORMAT);
    const links: (readonly [End, End])[] = [];
    const neighbours = new Map<string, Set<string>>();
    const meet = (a: string, b: string): void => {
      getOrInsert(neighbours, a, () => new Set()).add(b);
    };
    const take = (row: Fields): void => {
      const rack = textOf(fieldsOf(row["rack"])?.["name"]);
      if (rack !== null) list.add({ machine: textOf(row["name"]) ?? "", rack });
      const near = endOf(row);
      const ends = Array.isArray(row["connected_endpoints"]) ? row["connected_endpoints"] : [];
      for (const value of ends) {
        const far = endOf(fieldsOf(value) ?? {});
        if (!near || !far || links.length >= MAX_LINKS) continue;
        links.push([near, far]);
        meet(near.device, far.device);
        meet(far.device, near.device);
      }
    };
    return new JsonRowsSink(list, "interfaces and devices", take, () => {
      const met = ({ device }: End): number => neighbours.get(device)!.size;
      for (const [a, b] of links) {
        if (met(a) === met(b)) continue;
        const [host, leaf] = met(a) < met(b) ? [a, b] : [b, a];
        list.add({ machine: host.device, nic: host.port, leaf: leaf.device });
      }
    });
  },
};

function endOf(row: Fields): End | null {
  const device = textOf(fieldsOf(row["device"])?.["name"]);
  const port = textOf(row["name"]);
  return device === null || port === null ? null : { device, port };
}
