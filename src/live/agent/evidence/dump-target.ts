/** Where a dump goes: a new folder, or one .tar.gz (ustar) that is only there when it is whole. */
import { once } from "node:events";
import { constants, createReadStream, createWriteStream, rmSync, type WriteStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { createGzip, type Gzip } from "node:zlib";
import { errorText, UserError } from "../../../base/errors.ts";

export interface DumpTarget {
  add(name: string, bytes: Buffer): Promise<void>;
  /** Copies a file as it is now; its size, cut at `mostBytes`. */
  addFile(name: string, path: string, mostBytes: number): Promise<number>;
  end(): Promise<void>;
  /** Removes what was written. */
  abandon(): void;
}

const BLOCK = 512;
const NAME_BYTES = 100;
const MODE = 0o600;

/** UserError where it cannot be written. */
export async function openTarget(out: string): Promise<DumpTarget> {
  refuseKernelFolder(out);
  try {
    return /\.(tar\.gz|tgz)$/i.test(out) ? await tarTarget(out) : await folderTarget(out);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw cannotWrite(out, error);
  }
}

export function cannotWrite(out: string, error: unknown): UserError {
  const why = errorText(error);
  return new UserError(`${out}: the dump cannot be written: ${why}`, "give --out another place");
}

/** mkdir with recursive never comes back from the kernel's own folders; /dev/shm is memory, and a fine place. */
function refuseKernelFolder(out: string): void {
  if (/^\/(proc|sys|dev(?!\/shm\/))(\/|$)/.test(resolve(out)))
    throw new UserError(`${out}: a folder of the kernel`, "give --out another place", 2);
}

async function folderTarget(out: string): Promise<DumpTarget> {
  const info = await stat(out).catch(() => null);
  if (info !== null && !info.isDirectory())
    throw new UserError(
      `${out}: is a file`,
      "give --out a new folder or a name that ends in .tar.gz",
      2,
    );
  if (info !== null && (await readdir(out)).length > 0)
    throw new UserError(
      `${out}: is not empty`,
      "give --out a new folder or a name that ends in .tar.gz",
      2,
    );
  await mkdir(out, { recursive: true, mode: 0o700 });
  const made: string[] = [];
  const place = async (name: string): Promise<string> => {
    const path = join(out, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    made.push(path);
    return path;
  };
  return {
    async add(name, bytes) {
      await writeFile(await place(name), bytes, { mode: MODE });
    },
    async addFile(name, path, mostBytes) {
      const source = await plainFile(path, mostBytes);
      const sink = createWriteStream(await place(name), { mode: MODE });
      for await (const chunk of source.chunks) await write(sink, chunk);
      sink.end();
      await once(sink, "finish");
      return source.sizeBytes;
    },
    end: async () => {},
    abandon() {
      // A folder that was there before stays.
      for (const path of info === null ? [out] : made)
        rmSync(path, { recursive: true, force: true });
    },
  };
}

async function tarTarget(out: string): Promise<DumpTarget> {
  await mkdir(dirname(resolve(out)), { recursive: true });
  const part = `${out}.part`;
  // What an earlier try left, or somebody put there: a link is removed, and never followed.
  await rm(part, { force: true });
  const file = createWriteStream(part, { mode: MODE, flags: "wx" });
  await once(file, "open");
  const zip = createGzip({ level: 1 });
  const broken = new Promise<never>((_, reject) => {
    file.on("error", reject);
    zip.on("error", reject);
  });
  broken.catch(() => {});
  zip.pipe(file);
  const put = (bytes: Buffer): Promise<void> => Promise.race([write(zip, bytes), broken]);
  const seconds = Math.floor(Date.now() / 1000);
  return {
    async add(name, bytes) {
      await put(tarHeader(name, bytes.length, seconds));
      await put(bytes);
      await put(padding(bytes.length));
    },
    async addFile(name, path, mostBytes) {
      const { sizeBytes, chunks } = await plainFile(path, mostBytes);
      await put(tarHeader(name, sizeBytes, seconds));
      for await (const chunk of chunks) await put(chunk);
      await put(padding(sizeBytes));
      return sizeBytes;
    },
    async end() {
      await put(Buffer.alloc(2 * BLOCK));
      zip.end();
      await Promise.race([once(file, "finish"), broken]);
      await rename(part, out);
    },
    abandon() {
      zip.destroy();
      file.destroy();
      rmSync(part, { force: true });
    },
  };
}

async function write(sink: WriteStream | Gzip, bytes: Buffer): Promise<void> {
  if (bytes.length > 0 && !sink.write(bytes)) await once(sink, "drain");
}

/** Exactly the bytes that the file had when it was opened: zeros stand for what was cut off meanwhile. */
async function plainFile(
  path: string,
  mostBytes: number,
): Promise<{ sizeBytes: number; chunks: AsyncIterable<Buffer> }> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const info = await handle.stat();
  if (!info.isFile()) {
    await handle.close();
    throw new Error("is not a plain file");
  }
  const sizeBytes = Math.min(info.size, mostBytes);
  async function* chunks(): AsyncGenerator<Buffer> {
    let left = sizeBytes;
    if (left > 0) {
      const stream = createReadStream(path, {
        fd: handle,
        start: 0,
        end: sizeBytes - 1,
        highWaterMark: 1 << 18,
      });
      for await (const chunk of stream) {
        left -= (chunk as Buffer).length;
        yield chunk as Buffer;
      }
    } else await handle.close();
    for (; left > 0; left -= BLOCK) yield Buffer.alloc(Math.min(left, BLOCK));
  }
  return { sizeBytes, chunks: chunks() };
}

function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

/** A ustar header; a name that is too long for it comes before as a GNU 'L' member. */
function tarHeader(name: string, size: number, seconds: number): Buffer {
  const long = Buffer.from(name);
  if (long.length <= NAME_BYTES) return block(name, size, seconds, "0");
  const body = Buffer.concat([long, Buffer.alloc(1)]);
  return Buffer.concat([
    block("././@LongLink", body.length, seconds, "L"),
    body,
    padding(body.length),
    block(long.subarray(0, NAME_BYTES).toString("latin1"), size, seconds, "0"),
  ]);
}

function block(name: string, size: number, seconds: number, type: string): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number): void => {
    bytes.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
  };
  bytes.write(name, 0, NAME_BYTES, "utf8");
  octal(MODE, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  if (size < 8 ** 11) octal(size, 124, 12);
  else {
    // Base 256, as GNU tar writes what eleven octal digits cannot hold.
    bytes[124] = 0x80;
    bytes.writeBigUInt64BE(BigInt(size), 128);
  }
  octal(seconds, 136, 12);
  bytes.write("        ", 148, "latin1");
  bytes.write(type, 156, "latin1");
  bytes.write("ustar\u000000", 257, "latin1");
  let sum = 0;
  for (const byte of bytes) sum += byte;
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}
