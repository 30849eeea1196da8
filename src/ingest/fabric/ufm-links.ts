/**
 * UFM's links (`GET /ufmRest/resources/links`, UFM Enterprise REST API): one object a cable with both ends described, an
 * adapter as "HOST NIC", a port of a switch as "NAME:19".
 */
import type { Head, Reader } from "../reader.ts";
import { hostOf, switchName } from "./infiniband.ts";
import { JsonRowsSink, textOf } from "./json-rows.ts";
import { PortList } from "./port-list.ts";

const FORMAT = "ufm-links";
const ENDS = ["source_port_node_description", "destination_port_node_description"] as const;

export const ufmLinks: Reader = {
  format: FORMAT,
  sniff: ({ text }: Head): boolean =>
    /^\s*[[{]/.test(text) && ENDS.every((key) => text.includes(`"${key}"`)),
  open(file) {
    const list = new PortList(file, FORMAT);
    return new JsonRowsSink(list, "links", (link) => {
      const [a, b] = ENDS.map((key) => textOf(link[key]) ?? "") as [string, string];
      const [one, other] = [hostOf(a), hostOf(b)];
      if (one && !other) list.add({ ...one, leaf: withoutPort(b) });
      else if (other && !one) list.add({ ...other, leaf: withoutPort(a) });
    });
  },
};

/** "leaf-07:19" → "leaf-07"; "MF0;leaf-07:MQM9700/U1" as it is. */
function withoutPort(described: string): string {
  return switchName(described).replace(/:\d+(?:\/\d+)*$/, "");
}
