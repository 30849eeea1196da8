/**
 * `kubectl get nodes -o json`: labels say which switch and rack a node hangs on. NVIDIA's topograph writes
 * network.topology.nvidia.com/leaf (before: /block; later: fabric.topograph.run/tier-0), AWS the layers of its network, the
 * third being the closest. Zones and regions hold thousands of machines and name no part that breaks.
 */
import { fieldsOf } from "../../base/json.ts";
import type { Head, Reader } from "../reader.ts";
import { JsonRowsSink, textOf } from "./json-rows.ts";
import { PortList } from "./port-list.ts";

const FORMAT = "kubernetes-nodes";

const LEAF = [
  "network.topology.nvidia.com/leaf",
  "fabric.topograph.run/tier-0",
  "network.topology.nvidia.com/block",
  "topology.k8s.aws/network-node-layer-3",
];
/** A site's own: "topology.kubernetes.io/rack", "example.org/rack-id", "rack". */
const RACK = /(?:^|[/._-])rack(?:[._-]?(?:id|name))?$/i;

export const kubernetesNodes: Reader = {
  format: FORMAT,
  sniff({ text }: Head): boolean {
    return (
      /^\s*\{/.test(text) && /"kind":\s*"Node(?:List)?"/.test(text) && text.includes('"labels"')
    );
  },
  open(file) {
    const list = new PortList(file, FORMAT);
    return new JsonRowsSink(list, "nodes", (node) => {
      const metadata = fieldsOf(node["metadata"]);
      const machine = textOf(metadata?.["name"]);
      const labels = fieldsOf(metadata?.["labels"]);
      if (machine === null || !labels) return;
      const leaf = LEAF.map((key) => textOf(labels[key])).find((value) => value !== null) ?? null;
      const rack = Object.keys(labels).find((key) => RACK.test(key));
      list.add({ machine, leaf, rack: rack === undefined ? null : textOf(labels[rack]) });
    });
  },
};
