/** A column's texts, each made once: machines, devices and metrics come back in every other row. */
import type { Fields } from "./fields.ts";
import { SeriesIndex } from "./series-index.ts";

/** Only hostile tables have more. */
const MAX_TEXTS = 1 << 20;

export class FieldText {
  readonly #index = new SeriesIndex();
  readonly #texts: string[] = [];

  of(bytes: Buffer, fields: Fields, column: number): string {
    const from = fields.from[column]!;
    const to = fields.to[column]!;
    const known = this.#index.find(bytes, from, to);
    if (known !== undefined) return this.#texts[known]!;
    const raw = bytes.toString("utf8", from, to);
    const text = raw.includes('""') ? raw.replaceAll('""', '"') : raw;
    if (this.#texts.length < MAX_TEXTS) this.#index.put(this.#texts.push(text) - 1);
    return text;
  }
}
