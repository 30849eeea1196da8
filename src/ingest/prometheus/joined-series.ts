/**
 * Series by their labels, however a way encodes them: where remote read breaks off and raw samples are taken instead,
 * both must write into the same series, or every machine would seem to be scraped twice.
 */
import { LabelledSeries } from "../metrics/labelled-series.ts";

export class JoinedSeries extends LabelledSeries {
  readonly #encoded = new Map<string, number>();

  override ofJson(json: string): number | null {
    return this.#encoded.get(json) ?? super.ofJson(json);
  }

  override ofLabels(key: string, labels: Map<string, string>): number {
    const known = this.#encoded.get(key);
    if (known !== undefined) return known;
    const sorted = [...labels].sort(([a], [b]) => (a < b ? -1 : 1));
    const id = super.ofLabels(JSON.stringify(sorted), labels);
    this.#encoded.set(key, id);
    return id;
  }

  override known(key: string): number | undefined {
    return this.#encoded.get(key);
  }
}
