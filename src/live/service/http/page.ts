/** The page's files, as the build left them: read once, sent compressed, and nothing else of the disk can be reached. */
import { createHash } from "node:crypto";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { listOwn, readOwn } from "../../../base/own-files.ts";
import { encodingOf, squeezedSmall } from "./encoding.ts";

/** Of the built package, and of a run from source: both lie two folders below the root. */
export const WEB_FOLDER = fileURLToPath(new URL("../../../../dist/web", import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
};
const IS_TEXT = /\.(js|css|svg|html)$/;
const ASSET = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$/;
const MOST_ASSETS = 64;
const MOST_BYTES = 8 << 20;

/** Everything is a file of its own from this very service: what is written into the page by a stranger runs nowhere. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Of everything else: nothing that a browser could run. */
export const BARE_POLICY =
  "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * A report is a page of its own, with a stricter policy of its own inside (report/html/page.ts). Sandboxed: whatever it
 * holds is no page of this service and cannot ask it anything.
 */
export const REPORT_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; sandbox allow-scripts; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Faultline</title>
<p>The page has not been built. Run: npm run build, and start the service again.</p>
<p>The service itself works. Its API is described in <a href="/api/v1/openapi.json">openapi.json</a>.</p>
</html>
`;

interface PageFile {
  readonly type: string;
  readonly etag: string;
  readonly plain: Buffer;
  /** null for what is compressed already. */
  readonly small: Promise<{ readonly br: Buffer; readonly gzip: Buffer }> | null;
}

export interface Page {
  /** "/" or the name below /assets/; null for what is not there. */
  answer(this: void, name: string, headers: Headers): Promise<Response | null>;
}

/** What a request says about the answer that it wants. */
export interface Headers {
  readonly "accept-encoding"?: string | readonly string[] | undefined;
  readonly "if-none-match"?: string | undefined;
}

export function readPage(folder: string): Page {
  const index = fileOf(join(folder, "index.html"), "text/html; charset=utf-8");
  const root = index ?? pageFile(Buffer.from(NOT_BUILT), "text/html; charset=utf-8", true);
  const assets = index ? assetsOf(join(folder, "assets")) : new Map<string, PageFile>();
  return {
    async answer(name, headers) {
      const isRoot = name === "/";
      const file = isRoot ? root : assets.get(name);
      if (!file) return null;
      const shared = {
        etag: file.etag,
        vary: "accept-encoding",
        // Names of assets hold a hash of what is in them; the page itself is asked for again each time.
        "cache-control": isRoot ? "no-cache" : "public, max-age=31536000, immutable",
        ...(isRoot ? { "content-security-policy": PAGE_POLICY } : {}),
      };
      const known = headers["if-none-match"]
        ?.split(",")
        .map((tag) => tag.trim().replace(/^W\//, ""));
      if (known?.includes(file.etag)) return new Response(null, { status: 304, headers: shared });
      const encoding = file.small === null ? null : encodingOf(headers["accept-encoding"]);
      const body = encoding === null ? file.plain : (await file.small!)[encoding];
      return new Response(new Uint8Array(body), {
        headers: {
          ...shared,
          "content-type": file.type,
          "content-length": String(body.length),
          ...(encoding === null ? {} : { "content-encoding": encoding }),
        },
      });
    },
  };
}

function assetsOf(folder: string): Map<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const name of readdirOr(folder).sort().slice(0, MOST_ASSETS)) {
    const type = TYPES[extname(name)];
    const file = type !== undefined && ASSET.test(name) ? fileOf(join(folder, name), type) : null;
    if (file) files.set(name, file);
  }
  return files;
}

function readdirOr(folder: string): string[] {
  try {
    return listOwn(folder);
  } catch {
    return [];
  }
}

/** null where there is none, or one that cannot be ours. */
function fileOf(path: string, type: string): PageFile | null {
  try {
    const bytes = readOwn(path);
    return bytes.length > MOST_BYTES ? null : pageFile(bytes, type, IS_TEXT.test(path));
  } catch {
    return null;
  }
}

function pageFile(plain: Buffer, type: string, isText: boolean): PageFile {
  const etag = `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`;
  return { type, etag, plain, small: isText ? squeezedSmall(plain) : null };
}
