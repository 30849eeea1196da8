/**
 * A builder's series by their labels: one label set is one series, in however many pieces, answers or lines it comes.
 * Shared by all answers that belong together.
 */
import type { MetricType } from "../../model/metrics.ts";
import type { MetricSetBuilder } from "./metric-set-builder.ts";

export class LabelledSeries {
  readonly builder: MetricSetBuilder;
  readonly #typeOf: (name: string) => MetricType;
  readonly #ids = new Map<string, number>();
  /** Series of wanted names that no label puts on a machine, or whose labels the catalog does not want. */
  unwanted = 0;
  /** Results of expressions: they have no name that could say what they measure. */
  nameless = 0;

  constructor(
    builder: MetricSetBuilder,
    typeOf: (name: string) => MetricType = () => "unknown" as const,
  ) {
    this.builder = builder;
    this.#typeOf = typeOf;
  }

  /** `json`: the metric object as it stands in an answer. -1 for series that nobody wants; null: no such object. */
  ofJson(json: string): number | null {
    const known = this.#ids.get(json);
    if (known !== undefined) return known;
    const labels = parsed(json);
    if (labels === null) return null;
    return this.ofLabels(json, labels);
  }

  /** `key`: the same for the same labels, however they are encoded. */
  ofLabels(key: string, labels: Map<string, string>): number {
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const name = labels.get("__name__") ?? "";
    let id = -1;
    if (name === "") this.nameless++;
    else {
      labels.delete("__name__");
      id = this.builder.labelled(name, labels, this.#typeOf(name));
      if (id < 0) this.unwanted++;
    }
    this.#ids.set(key, id);
    return id;
  }

  known(key: string): number | undefined {
    return this.#ids.get(key);
  }
}

function parsed(json: string): Map<string, string> | null {
  try {
    const labels = JSON.parse(json) as Record<string, unknown>;
    return new Map(Object.entries(labels).map(([name, value]) => [name, String(value)]));
  } catch {
    return null;
  }
}
