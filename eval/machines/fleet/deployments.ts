/**
 * How sites label their machines: the label sets of the commonest ways to run dcgm-exporter and node_exporter, as their
 * charts and units ship them. Every one but the last two gives a machine two names.
 */
import { hash } from "../../../src/simulate/cluster/noise.ts";

export const DEPLOYMENTS = [
  "kube-prometheus-stack",
  "gpu-operator",
  "systemd",
  "slurm",
  "cloud",
  "one-name",
] as const;
export type Deployment = (typeof DEPLOYMENTS)[number];

export type Labels = Readonly<Record<string, string>>;

export interface SiteLabels {
  readonly machine: string;
  readonly gpu: Labels;
  readonly host: Labels;
  /** Series that are always 1 and say who is who. */
  readonly info: readonly { readonly name: string; readonly labels: Labels }[];
}

const LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** `run` counts the exporter's restarts: its pod then has another name and address. */
export function siteLabels(
  deployment: Deployment,
  machine: number,
  run: number,
  seed: number,
): SiteLabels {
  const name = `node${String(machine + 100 * (seed % 7)).padStart(3, "0")}`;
  const host = `10.40.${20 + (machine >> 7)}.${2 + (machine & 127)}`;
  const podAddress = `10.244.${machine & 255}.${3 + ((run + (machine >> 8)) % 250)}`;
  const podName = (prefix: string, which: number): string =>
    `${prefix}-${Array.from({ length: 5 }, (_, n) => LETTERS[hash(seed, machine, which, n) % LETTERS.length]).join("")}`;
  const uname = (instance: string, labels: Labels = {}) => ({
    name: "node_uname_info",
    labels: { nodename: name, sysname: "Linux", machine: "x86_64", instance, ...labels },
  });
  const pod = (namespace: string, own: string, address: string) => ({
    name: "kube_pod_info",
    labels: {
      namespace,
      pod: own,
      node: name,
      host_ip: host,
      pod_ip: address,
      created_by_kind: "DaemonSet",
      instance: "10.244.0.9:8080",
    },
  });
  const nodeExporter = podName("kps-prometheus-node-exporter", 0);
  const kubeHost = {
    instance: `${host}:9100`,
    job: "node-exporter",
    namespace: "monitoring",
    pod: nodeExporter,
  };
  switch (deployment) {
    case "kube-prometheus-stack": {
      // Without NODE_NAME in its environment the exporter takes its pod for its host.
      const own = podName("dcgm-exporter", 1 + run);
      const labels = { namespace: "gpu", pod: own };
      return {
        machine: name,
        gpu: { Hostname: own, instance: `${podAddress}:9400`, job: "dcgm-exporter", ...labels },
        host: kubeHost,
        info: [
          uname(kubeHost.instance, { pod: nodeExporter, namespace: "monitoring" }),
          pod("gpu", own, podAddress),
        ],
      };
    }
    case "gpu-operator": {
      const own = podName("nvidia-dcgm-exporter", 1 + run);
      return {
        machine: name,
        gpu: {
          Hostname: name,
          instance: `${podAddress}:9400`,
          namespace: "gpu-operator",
          pod: own,
          exported_pod: `trainer-${machine}`,
          exported_namespace: "train",
        },
        host: kubeHost,
        info: [uname(kubeHost.instance, { pod: nodeExporter, namespace: "monitoring" })],
      };
    }
    case "systemd":
      return {
        machine: name,
        gpu: { Hostname: name, instance: `${host}:9400`, job: "dcgm" },
        host: { instance: `${host}:9100`, job: "node" },
        info: [],
      };
    case "slurm":
      return {
        machine: name,
        gpu: { Hostname: name, instance: `${name}:9400`, job: "dcgm" },
        host: { instance: `${name}.cluster.local:9100`, job: "node" },
        info: [],
      };
    case "cloud": {
      const own = `ip-${host.replaceAll(".", "-")}`;
      return {
        machine: own,
        gpu: { hostname: own, instance: `${own}.ec2.internal:9400`, job: "dcgm" },
        host: { instance: `${host}:9100`, job: "node" },
        info: [],
      };
    }
    case "one-name":
      return {
        machine: name,
        gpu: { Hostname: name, instance: `${name}:9400`, job: "dcgm" },
        host: { instance: `${name}:9100`, job: "node" },
        info: [],
      };
  }
}
