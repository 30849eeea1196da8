/** Answers of proxies that compress them although nobody asked for it. */
import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { ServerFailure } from "./failure.ts";

type Answer = Readable & {
  readonly headers: { readonly "content-encoding"?: string | undefined };
};

/** The answer's own bytes. Throws for encodings that we do not know; `fail` gets what is found out later. */
export function plain(response: Answer, fail?: (failure: ServerFailure) => void): Readable {
  const encoding = (response.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding === "" || encoding === "identity") return response;
  const decoder = decoderOf(encoding);
  if (!decoder) {
    throw new ServerFailure("foreign", `it answers in ${encoding}, which nobody asked for`);
  }
  decoder.on("error", () =>
    fail?.(new ServerFailure("cut", `the answer broke off, or its ${encoding} is damaged`)),
  );
  // pipe() does not hand on that the answer was cut: then nobody would ever end the decoder.
  response.on("error", (error) => decoder.destroy(error));
  return response.pipe(decoder);
}

function decoderOf(encoding: string): ReturnType<typeof createGunzip> | null {
  if (encoding === "gzip" || encoding === "x-gzip") return createGunzip();
  if (encoding === "deflate") return createInflate();
  return encoding === "br" ? createBrotliDecompress() : null;
}
