/** Columns of wide tables: of which machine, device and metric they are ("node003/gpu0/power", Grafana's series). */
import { deviceOfLabels, isInfo, machineOfLabels } from "../metrics/metric-labels.ts";
import { servedBy } from "../../model/metric-catalog.ts";
import { looksLikeMachine } from "./file-words.ts";
import { labelsOf } from "./labels.ts";
import { metricWord, type MetricWord } from "./metric-words.ts";

interface SeriesColumn {
  readonly machine: string;
  readonly device: string;
  readonly metric: MetricWord;
  /** Of an exporter's series: the builder reads them as it reads a scrape's. */
  readonly labels?: ReadonlyMap<string, string>;
}

const LABELLED = /^([A-Za-z_:][\w:.]*)?\s*\{(.*)\}$/;
const DEVICE =
  /^(?:(?:gpu|nic|cpu|hca|nvidia)[ _-]?\d{1,3}|mlx5_\d+(?:\/\d+)?|(?:eth|ens|ib)\w{1,12})$/i;
/** No device is called so: a domain, or a number with leading zeros (gpu-001.cluster.local, gpu001). */
const HOST = /^(?:[a-z][\w-]*(?:\.[a-z][\w-]*)+|[a-z]+[_-]?0\d+)$/i;
const PORT = /(?<=[\w\]]):\d{2,5}$/;

/**
 * null where the name is not that of one machine's series. `metric`: what the whole table measures, where its name
 * says so; then a column needs to name just a machine.
 */
export function seriesColumn(given: string, metric: MetricWord | null): SeriesColumn | null {
  const name = given.trim();
  const labelled = LABELLED.exec(name);
  if (labelled) return ofLabels(labelled[1] ?? "", labelled[2]!, metric);
  return ofParts(name, metric);
}

export function isHostName(text: string): boolean {
  return HOST.test(text.trim().replace(PORT, ""));
}

function ofLabels(name: string, text: string, whole: MetricWord | null): SeriesColumn | null {
  const labels = labelsOf(text) ?? bareLabels(text);
  const machine = labels && machineOfLabels(labels);
  const named = name || labels?.get("__name__") || "";
  const metric = named === "" ? whole : metricWord(named);
  if (!labels || !machine || !metric) return null;
  const isExporters = !metric.isKnown || servedBy(metric.name).length > 0 || isInfo(named);
  const device = deviceOfLabels(labels) || metric.device;
  return { machine, device, metric, ...(isExporters && named !== "" ? { labels } : {}) };
}

/** Grafana writes legends as {instance=x, gpu=0} when asked for CSV by hand. */
function bareLabels(text: string): Map<string, string> | null {
  const pairs = text.split(",").map((pair) => /^\s*(\w+)\s*[=:]\s*"?([^"]*?)"?\s*$/.exec(pair));
  return pairs.every((pair) => pair !== null)
    ? new Map(pairs.map((pair) => [pair[1]!, pair[2]!]))
    : null;
}

function ofParts(name: string, whole: MetricWord | null): SeriesColumn | null {
  const plain = name.replace(PORT, "");
  if (whole !== null && HOST.test(plain)) return { machine: plain, device: "", metric: whole };
  const parts = plain.split(/\s*[/:|]\s*|\s+-\s+|\s+/).filter((part) => part !== "");
  let machine = "";
  let device = "";
  const words: string[] = [];
  for (const part of parts) {
    if (DEVICE.test(part)) device ||= deviceName(part);
    else if (machine === "" && looksLikeMachine(part) && !metricWord(part).isKnown) machine = part;
    else words.push(part);
  }
  if (words.length === 1 && machine === "" && whole === null) return null;
  if (whole !== null && words.length === 1 && machine === "") {
    [machine] = words as [string];
    words.pop();
  } else if (machine === "" && words.length >= 2) machine = words.shift()!;
  if (machine === "") return null;
  if (words.length === 1 && whole !== null && /^\d{1,3}$/.test(words[0]!)) {
    device ||= `gpu${words.pop()}`;
  }
  if (words.length === 0) {
    if (whole === null) return null;
    return { ...machineAndDevice(machine, device), metric: whole };
  }
  const metric = metricWord(words.join(" "));
  const better = metric.isKnown ? metric : metricWord(words.join("_"));
  const found = better.isKnown ? better : metric;
  return { ...machineAndDevice(machine, device || found.device), metric: found };
}

/** "node003-gpu2" and "10.0.0.4-2" name both. */
function machineAndDevice(name: string, device: string): { machine: string; device: string } {
  const joined =
    device === ""
      ? (/^(.+?)[-_.](?:gpu|nvidia)[-_]?(\d{1,3})$/i.exec(name) ??
        /^(\d{1,3}(?:\.\d{1,3}){3})[-_](\d{1,2})$/.exec(name))
      : null;
  return joined ? { machine: joined[1]!, device: `gpu${joined[2]}` } : { machine: name, device };
}

/** "GPU 3", "3" and "nvidia3" → "gpu3"; other names as they are. */
export function deviceName(text: string, kind = "gpu"): string {
  const given = text.trim();
  const number = /^(?:(gpu|nic|cpu|hca|nvidia|cuda)[ :_-]?)?(\d{1,3})(?:\.0)?$/i.exec(given);
  if (!number) return given.slice(0, 128);
  const word = (number[1] ?? kind).toLowerCase();
  return `${word === "nvidia" || word === "cuda" ? "gpu" : word}${number[2]}`;
}
