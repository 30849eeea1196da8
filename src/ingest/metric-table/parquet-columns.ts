/** Columns of a Parquet file's row groups, decoded at once: hyparquet's own reading is asynchronous, its parts are not. */
import type { ColumnMetaData, FileMetaData, ParquetParsers } from "hyparquet";
import { DEFAULT_PARSERS } from "hyparquet/src/convert.js";
import { parquetMetadata, parquetSchema } from "hyparquet/src/metadata.js";
import { NO_NUMBER, textNumber } from "./byte-number.ts";
import { readPages } from "./parquet-pages.ts";
import { parseStamp } from "./times.ts";

interface ParquetColumn {
  readonly name: string;
  /** Whether its values are times, which are then given as unix seconds. */
  readonly isTime: boolean;
  /** Times that are said to be of no zone. */
  readonly isLocal: boolean;
}

const seconds = (unit: number) => (value: bigint | number) => Number(value) / unit;
const PARSERS: ParquetParsers = {
  ...DEFAULT_PARSERS,
  timestampFromMilliseconds: seconds(1e3),
  timestampFromMicroseconds: seconds(1e6),
  timestampFromNanoseconds: seconds(1e9),
  dateFromDays: (days) => days * 86_400,
  // Nothing that we need, and errors in it are not ours.
  jsonFromBytes: () => null,
  geometryFromBytes: () => null,
  geographyFromBytes: () => null,
};
/** Throws for what is no Parquet, as hyparquet does. */
export class ParquetFile {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #metadata: FileMetaData;
  readonly #tree: ReturnType<typeof parquetSchema>;
  /** Those without children. */
  readonly columns: readonly ParquetColumn[];
  /** By row group: its rows. */
  readonly groups: readonly number[];

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
    this.#metadata = parquetMetadata(bytes, { parsers: PARSERS, geoparquet: false });
    this.#tree = parquetSchema(this.#metadata);
    this.groups = this.#metadata.row_groups.map((group) => Number(group.num_rows));
    this.columns = this.#tree.children
      .filter(
        ({ children, element }) => children.length === 0 && element.repetition_type !== "REPEATED",
      )
      .map(({ element }) => {
        const logical = element.logical_type;
        const isTime =
          logical?.type === "TIMESTAMP" ||
          element.type === "INT96" ||
          /^(?:TIMESTAMP_|DATE$)/.test(element.converted_type ?? "");
        const isLocal = logical?.type === "TIMESTAMP" && !logical.isAdjustedToUTC;
        return { name: element.name, isTime, isLocal };
      });
  }

  /** At most `most` values of a group's column. */
  values(group: number, name: string, most = Infinity): unknown[] {
    const rows = Math.min(this.groups[group]!, most);
    const values: unknown[] = [];
    for (const page of this.#pages(group, name, rows)) {
      for (let i = 0; i < page.length && values.length < rows; i++) values.push(page[i]);
    }
    return values;
  }

  /** NaN for what is missing, or no number. */
  numbers(group: number, name: string): Float64Array {
    const numbers = new Float64Array(this.groups[group]!).fill(NaN);
    let at = 0;
    for (const page of this.#pages(group, name, numbers.length)) {
      for (let i = 0; i < page.length && at < numbers.length; i++) {
        const value = page[i];
        numbers[at++] = typeof value === "number" ? value : cellNumber(value);
      }
    }
    return numbers;
  }

  #pages(group: number, name: string, rows: number): readonly ArrayLike<unknown>[] {
    const meta = this.#metadata.row_groups[group]!.columns.find(
      ({ meta_data }) =>
        meta_data?.path_in_schema.length === 1 && meta_data.path_in_schema[0] === name,
    )?.meta_data;
    const node = this.#tree.children.find(({ element }) => element.name === name);
    if (!meta || !node) return [];
    const decoder = {
      pathInSchema: meta.path_in_schema,
      element: node.element,
      schemaPath: [this.#tree, node],
      type: meta.type,
      codec: meta.codec,
      parsers: PARSERS,
    };
    return readPages(this.#view(meta), decoder, rows);
  }

  #view(meta: ColumnMetaData): DataView {
    const from = Number(meta.dictionary_page_offset || meta.data_page_offset);
    const length = Math.min(Number(meta.total_compressed_size), this.#bytes.length - from);
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + from, length);
  }
}

/** NaN for what is missing, or no number. */
export function cellNumber(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "string") return NaN;
  const number = textNumber(value);
  return number === NO_NUMBER ? NaN : number;
}

/** As a text field of a table would have it; objects are none. */
export function cellText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "bigint" ? String(value) : "";
}

export function stampOf(
  value: unknown,
): { readonly timeS: number; readonly hasZone: boolean } | null {
  return typeof value === "string" ? parseStamp(value) : null;
}
