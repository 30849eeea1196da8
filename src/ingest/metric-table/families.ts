/** Which families of a scrape the catalog wants, and of what type they are said to be. */
import { isInfo } from "../metrics/metric-labels.ts";
import { servedBy } from "../../model/metric-catalog.ts";
import type { MetricType } from "../../model/metrics.ts";

const TYPE = /^#\s*TYPE\s+"?([^\s"]+)"?\s+([a-z]+)/;
const MAX_NAMES = 1 << 17;

export class Families {
  readonly #types = new Map<string, MetricType>();
  /** Name in the file → name in the catalog; null where nobody wants it. */
  readonly #names = new Map<string, string | null>();
  /** Names that nobody wants. */
  unknown = 0;

  /** A comment; gives back the names whose type it tells. */
  comment(line: string): { readonly names: readonly string[]; readonly type: MetricType } | null {
    const found = TYPE.exec(line);
    if (!found) return null;
    const family = found[1]!;
    const type: MetricType = found[2] === "counter" || found[2] === "gauge" ? found[2] : "unknown";
    // OpenMetrics names a counter's family without _total, the older format with it.
    const names = found[2] === "counter" ? [family, `${family}_total`] : [family];
    if (this.#types.size < MAX_NAMES) for (const name of names) this.#types.set(name, type);
    return { names, type };
  }

  wanted(name: string): string | null {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    // A client that writes OpenMetrics puts _total behind counters that are named without it in the older format.
    const short = name.endsWith("_total") ? name.slice(0, -"_total".length) : name;
    const wanted =
      isInfo(name) || servedBy(name).length > 0 ? name : servedBy(short).length > 0 ? short : null;
    if (wanted === null) this.unknown++;
    if (this.#names.size < MAX_NAMES) this.#names.set(name, wanted);
    return wanted;
  }

  type(name: string): MetricType {
    return this.#types.get(name) ?? (name.endsWith("_total") ? "counter" : "unknown");
  }
}
