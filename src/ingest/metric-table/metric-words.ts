/** What the words of a table's headings and rows measure: "GPU Util (%)", "gpu3_power_w", "DCGM_FI_DEV_GPU_TEMP". */
import { CATALOG, catalogMetric, plainName, servedBy } from "../../model/metric-catalog.ts";
import type { CatalogMetric } from "../../model/metric-catalog.ts";
import type { MetricType } from "../../model/metrics.ts";
import { unitFactor } from "./units.ts";

export interface MetricWord {
  /** The series' name: the catalog's id, an exporter's name, or the word itself. */
  readonly name: string;
  readonly type: MetricType;
  /** Whether the catalog has it. */
  readonly isKnown: boolean;
  /** "gpu3" where the word names one. */
  readonly device: string;
  readonly scale: number;
  /** Whether the word tells the unit. */
  readonly hasUnit: boolean;
  /** The catalog's unit, "" for others. */
  readonly unit: string;
}

/** nvidia-smi --query-gpu has words of its own. */
const NVIDIA_SMI: Readonly<Record<string, string>> = {
  utilizationgpu: "gpu-duty-cycle",
  memoryused: "gpu-memory-used",
  powerdraw: "gpu-power-draw",
  powerdrawinstant: "gpu-power-draw",
  powerdrawaverage: "gpu-power-draw",
  temperaturegpu: "gpu-temperature",
  clockssm: "gpu-clocks",
  clockscurrentsm: "gpu-clocks",
  clockscurrentsmmhz: "gpu-clocks",
  clocksmem: "gpu-memory-clock",
  clocksmemory: "gpu-memory-clock",
  clockscurrentmemory: "gpu-memory-clock",
  pcielinkgencurrent: "pcie-link-generation",
  pcielinkgengpucurrent: "pcie-link-generation",
  pcielinkwidthcurrent: "pcie-link-width",
};
const BY_ID = new Map(CATALOG.map((metric) => [metric.id, metric]));

const BRACKETED = /^(.*?)\s*[([]\s*([^)\]]{1,16})\s*[)\]]\s*$/;
const UNIT_WORD =
  /^(.*?)[_ .-](percent|pct|ratio|share|w|watts?|mw|mhz|ghz|hz|mib|mb|gib|gb|kib|kb|bytes|b|c|celsius|degc|bps|kbps|mbps|gbps|rate)$/i;
const PER_SECOND = /^(.*?)[_ .-](?:([kmg]i?b|b|bytes)[_ ]?)?(?:per_s(?:ec(?:ond)?)?|ps|_s)$/i;
/** "gpu0_util", "GPU 3 power", "nic1 tx". */
const DEVICE_FIRST = /^(gpu|nic|hca|disk|cpu)[ _.-]?(\d{1,3})(?=[ _.:/-]|$)[ _.:/-]?(.*)$/i;
/** "gpu_util_3", "power.draw[2]". */
const DEVICE_LAST = /^(.*?[A-Za-z)])[ _.-]?(?:gpu)?[ _.-]?\[?(\d{1,3})\]?$/i;

/** Wide tables have tens of thousands of columns of a few words. */
const MEMORY = 1 << 12;
const remembered = new Map<string, MetricWord>();

export function metricWord(given: string): MetricWord {
  const before = remembered.get(given);
  if (before) return before;
  const text = given.trim();
  const word = known(text, "") ?? ofDevice(text) ?? ownWord(text);
  if (remembered.size >= MEMORY) remembered.clear();
  remembered.set(given, word);
  return word;
}

function ownWord(text: string): MetricWord {
  const type = text.endsWith("_total") ? "counter" : "unknown";
  return { name: text, type, isKnown: false, device: "", scale: 1, hasUnit: true, unit: "" };
}

function ofDevice(text: string): MetricWord | null {
  const first = DEVICE_FIRST.exec(text);
  if (first) {
    const [, kind, number, rest] = first;
    const device = `${kind!.toLowerCase()}${number}`;
    return known(`${kind}_${rest}`, device) ?? known(rest!, device) ?? known(kind!, device);
  }
  const last = DEVICE_LAST.exec(text);
  const found = last && known(last[1]!, "");
  return found ? { ...found, device: `${deviceKind(found.name)}${last[2]}` } : null;
}

function deviceKind(name: string): string {
  const metric = BY_ID.get(name) ?? servedBy(name)[0]?.metric;
  if (metric?.group === "gpu" || metric?.group === "state") return "gpu";
  return metric?.group === "cpu" ? "cpu" : metric?.group === "disk" ? "disk" : "nic";
}

function known(text: string, device: string): MetricWord | null {
  const exporter = exporterName(text);
  if (exporter !== null) {
    const type = exporter.endsWith("_total") ? "counter" : "unknown";
    return { name: exporter, type, isKnown: true, device, scale: 1, hasUnit: true, unit: "" };
  }
  const [, inner, unit] = BRACKETED.exec(text) ?? [];
  if (inner !== undefined) {
    const metric = inCatalog(inner) ?? inCatalog(UNIT_WORD.exec(inner)?.[1] ?? "");
    if (metric) return word(metric, device, unitFactor(metric.unit, unit!));
    return exporterName(inner) === null ? null : known(inner, device);
  }
  const whole = inCatalog(text);
  if (whole) return word(whole, device, null);
  const [, base, last] = UNIT_WORD.exec(text) ?? [];
  const metric = base === undefined ? null : inCatalog(base);
  if (metric) return word(metric, device, unitFactor(metric.unit, last!));
  const second = PER_SECOND.exec(text);
  const rate = second && inCatalog(second[1]!);
  if (!rate) return null;
  return word(rate, device, second[2] ? unitFactor(rate.unit, `${second[2]}/s`) : null);
}

function word(metric: CatalogMetric, device: string, factor: number | null): MetricWord {
  const { id: name, unit } = metric;
  const scale = factor ?? 1;
  const type = "gauge";
  return { name, type, isKnown: true, device, scale, hasUnit: factor !== null, unit };
}

function inCatalog(text: string): CatalogMetric | null {
  const plain = plainName(text);
  const smi = Object.hasOwn(NVIDIA_SMI, plain) ? BY_ID.get(NVIDIA_SMI[plain]!) : undefined;
  return plain === "" ? null : (smi ?? catalogMetric(text));
}

function exporterName(text: string): string | null {
  // nvidia_gpu_exporter makes its names of the words of nvidia-smi's queries.
  if (/^\w+(?:\.\w+)+$/.test(text)) {
    const name = `nvidia_smi_${text.replaceAll(".", "_")}`;
    return inCatalog(text) === null && servedBy(name).length > 0 ? name : null;
  }
  if (!/^\w+$/.test(text)) return null;
  const upper = text.toUpperCase();
  const names = [text, upper, `DCGM_FI_${upper}`, `DCGM_FI_DEV_${upper}`, `DCGM_FI_PROF_${upper}`];
  // The catalog's own words come first: "gpu_util" may be a share, which the exporter's never is.
  if (catalogMetric(text) !== null) names.splice(2);
  return names.find((name) => servedBy(name).length > 0) ?? null;
}
