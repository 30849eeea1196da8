/**
 * The pages of a Parquet column. hyparquet believes what a page says of its lengths; a damaged file would make it loop
 * or fill the memory, so pages are unpacked and looked over here before it decodes them.
 */
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { decompress } from "fzstd";
import { snappyUncompress } from "hyparquet/src/snappy.js";
import { parquetHeader, readPage } from "hyparquet/src/column.js";
import { convert } from "hyparquet/src/convert.js";

type Decoder = Parameters<typeof readPage>[2];
type Header = ReturnType<typeof parquetHeader>;
type Values = NonNullable<Parameters<typeof readPage>[3]>;

/** Writers make pages of a megabyte. */
const MAX_PAGE_BYTES = 1 << 28;

/** The values of a flat column's first `rows` rows, page by page. */
export function readPages(view: DataView, decoder: Decoder, rows: number): ArrayLike<unknown>[] {
  const reader = { view, offset: 0 };
  const plain: Decoder = { ...decoder, codec: "UNCOMPRESSED" };
  const isOptional = decoder.element.repetition_type === "OPTIONAL";
  const pages: ArrayLike<unknown>[] = [];
  let dictionary: Values | undefined;
  let read = 0;
  while (read < rows && reader.offset < view.byteLength - 1) {
    const header = parquetHeader(reader);
    const packed = size(header.compressed_page_size, view.byteLength - reader.offset);
    const given = new Uint8Array(
      view.buffer as ArrayBuffer,
      view.byteOffset + reader.offset,
      packed,
    );
    reader.offset += packed;
    const { page, levels } = unpacked(given, header, decoder.codec);
    const values = check(page, levels, header, isOptional);
    const bare = {
      ...header,
      compressed_page_size: page.length,
      uncompressed_page_size: page.length,
    };
    const inner = { view: new DataView(page.buffer, page.byteOffset, page.length), offset: 0 };
    const { data } = readPage(inner, bare, plain, dictionary, undefined, 0);
    if (header.type === "DICTIONARY_PAGE") {
      if (data) dictionary = convert(data, decoder);
      continue;
    }
    if (!data || values === 0) continue;
    pages.push(data);
    read += data.length;
  }
  return pages;
}

function size(given: number, most: number): number {
  if (!(given >= 0 && given <= most)) throw new Error("a page has an impossible length");
  return given;
}

/** Levels of pages of version 2 are never packed and stand before the rest. */
function unpacked(
  given: Uint8Array<ArrayBuffer>,
  header: Header,
  codec: Decoder["codec"],
): { readonly page: Uint8Array<ArrayBuffer>; readonly levels: number } {
  const length = size(header.uncompressed_page_size, MAX_PAGE_BYTES);
  const second = header.data_page_header_v2;
  if (!second) return { page: unpack(given, length, codec), levels: 0 };
  const levels = size(
    second.definition_levels_byte_length + second.repetition_levels_byte_length,
    Math.min(given.length, length),
  );
  if (second.repetition_levels_byte_length !== 0)
    throw new Error("a page of lists in a flat column");
  if (second.is_compressed === false) return { page: given, levels };
  second.is_compressed = false;
  const page = new Uint8Array(length);
  page.set(given.subarray(0, levels));
  page.set(unpack(given.subarray(levels), length - levels, codec), levels);
  return { page, levels };
}

function unpack(
  given: Uint8Array<ArrayBuffer>,
  length: number,
  codec: Decoder["codec"],
): Uint8Array<ArrayBuffer> {
  const limit = { maxOutputLength: Math.max(1, length) };
  if (codec === "UNCOMPRESSED" || length === 0) return given.subarray(0, length);
  let page: Uint8Array<ArrayBuffer>;
  if (codec === "SNAPPY") {
    page = new Uint8Array(length);
    snappyUncompress(given, page);
  } else if (codec === "GZIP") page = Uint8Array.from(gunzipSync(given, limit));
  else if (codec === "BROTLI") page = Uint8Array.from(brotliDecompressSync(given, limit));
  else if (codec === "ZSTD") page = decompress(given, new Uint8Array(length)) as typeof page;
  else throw new Error(`its compression (${codec}) is not supported`);
  if (page.length !== length) throw new Error("a page does not have the length that it states");
  return page;
}

/** Looks over the runs of a page; gives its number of values. */
function check(page: Uint8Array, levels: number, header: Header, isOptional: boolean): number {
  const first = header.data_page_header;
  const second = header.data_page_header_v2;
  const values = (first ?? second ?? header.dictionary_page_header)?.num_values ?? -1;
  // Eight values a byte at best, or runs of one value.
  if (!(values >= 0 && values <= 1 << 25))
    throw new Error("a page has an impossible number of values");
  const data = first ?? second;
  if (header.type === "DICTIONARY_PAGE" || !data) {
    if (values > page.length) throw new Error("a dictionary has more values than bytes");
    return values;
  }
  let at = levels;
  if (second) {
    if (levels > 0) checkRuns(page, 0, levels, 1, values);
  } else if (isOptional) {
    const length = new DataView(page.buffer, page.byteOffset, page.length).getUint32(0, true);
    at = 4 + size(length, page.length - 4);
    checkRuns(page, 4, at, 1, values);
  }
  const { encoding } = data;
  if (encoding === "RLE") throw new Error("a column of booleans measures nothing");
  if (encoding === "PLAIN_DICTIONARY" || encoding === "RLE_DICTIONARY") {
    const width = page[at] ?? 0;
    if (width > 32) throw new Error("a page has numbers of more than 32 bits");
    if (width > 0) checkRuns(page, at + 1, page.length, width, values);
  } else if (encoding === "PLAIN" && values > 8 * page.length) {
    throw new Error("a page has more values than bits");
  }
  return values;
}

/** Runs of the RLE and bit-packing hybrid: none may be of more values than the page has. */
function checkRuns(
  page: Uint8Array,
  from: number,
  end: number,
  width: number,
  values: number,
): void {
  let seen = 0;
  let at = from;
  while (seen < values && at < end) {
    let head = 0;
    let shift = 0;
    let byte = 0;
    do {
      byte = page[at++] ?? 0;
      head += (byte & 127) * 2 ** shift;
      shift += 7;
    } while (byte > 127 && shift < 35 && at < end);
    const groups = Math.floor(head / 2);
    const isPacked = head % 2 === 1;
    const length = isPacked ? groups * 8 : groups;
    // The last group of packed values is filled up to eight; a run of none would never end.
    if (length === 0 || length > values - seen + (isPacked ? 503 : 0)) {
      throw new Error("a page has a run longer than its number of values");
    }
    seen += length;
    at += isPacked ? groups * width : Math.ceil(width / 8);
  }
}
