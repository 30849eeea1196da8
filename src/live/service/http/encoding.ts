/** Which encoding of an answer a reader takes, and how one is made. */
import { promisify } from "node:util";
import zlib from "node:zlib";

export type Encoding = "br" | "gzip" | null;

/** Below this the headers cost as much as is saved. */
const LEAST_BYTES = 4096;
const gzip = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gzip);
const brotli = promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliCompress);

/** Of an Accept-Encoding header (RFC 9110 §12.5.3); `q=0` says that it must not be. */
export function encodingOf(header: string | readonly string[] | undefined): Encoding {
  const taken = new Set<string>();
  for (const part of String(header ?? "").split(",", 32)) {
    const [name = "", ...rest] = part.split(";");
    const isRefused = rest.some((one) => /^\s*q\s*=\s*0(\.0*)?\s*$/i.test(one));
    if (!isRefused) taken.add(name.trim().toLowerCase());
  }
  return taken.has("br") ? "br" : taken.has("gzip") ? "gzip" : null;
}

/** Answers made for one request: fast rather than small, off the thread that listens to agents. null: as it is. */
export async function squeezed(
  json: string | Uint8Array,
  header: string | readonly string[] | undefined,
): Promise<{ readonly body: Buffer; readonly encoding: "br" | "gzip" } | null> {
  const encoding = json.length < LEAST_BYTES ? null : encodingOf(header);
  if (encoding === null) return null;
  const bytes =
    typeof json === "string"
      ? Buffer.from(json)
      : Buffer.from(json.buffer, json.byteOffset, json.length);
  const body =
    encoding === "br"
      ? await brotli(bytes, {
          params: {
            [zlib.constants.BROTLI_PARAM_QUALITY]: 1,
            [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
          },
        })
      : await gzip(bytes, { level: 1 });
  return { body, encoding };
}

/** Files that are served again and again: as small as can be, made once. */
export async function squeezedSmall(
  bytes: Buffer,
): Promise<{ readonly br: Buffer; readonly gzip: Buffer }> {
  const [br, zipped] = await Promise.all([
    brotli(bytes, {
      params: {
        [zlib.constants.BROTLI_PARAM_QUALITY]: 11,
        [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
    gzip(bytes, { level: 9 }),
  ]);
  return { br, gzip: zipped };
}
