/**
 * Tar archives as a stream of members (POSIX ustar and GNU: 512-byte header blocks, sizes in octal or
 * base 256, long names in 'L' members or pax 'x' records). Members must be read in order; what a
 * reader leaves unread is skipped. Archives one behind another are read as one, as by `tar -i`.
 */
interface TarMember {
  readonly name: string;
  readonly sizeBytes: number;
  /** When it was last written to, milliseconds since 1970; 0 in archives made without times. */
  readonly modifiedMs: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

const BLOCK = 512;

export function looksLikeTar(head: Uint8Array): boolean {
  return (
    head.length >= BLOCK && Buffer.from(head.subarray(257, 262)).toString("latin1") === "ustar"
  );
}

/** Yields the regular files of an archive. A cut or broken archive ends the stream with `onDefect`. */
export async function* tarMembers(
  chunks: AsyncIterable<Uint8Array>,
  onDefect: (what: string) => void,
): AsyncGenerator<TarMember> {
  const input = new ByteQueue(chunks);
  let longName: string | null = null;
  let isPastEnd = false;
  for (;;) {
    const header = await input.take(BLOCK);
    if (header.length < BLOCK) {
      if (header.length > 0 && !isPastEnd) onDefect("the archive is cut off in a header");
      return;
    }
    if (header.every((byte) => byte === 0)) {
      isPastEnd = true;
      continue;
    }
    // What fills a tape's last record is no archive.
    if (isPastEnd && !checksumHolds(header)) return;
    isPastEnd = false;
    const size = numberField(header, 124, 12);
    if (!Number.isSafeInteger(size) || size < 0 || !checksumHolds(header)) {
      onDefect("the archive is damaged: a header does not add up");
      return;
    }
    const padding = (BLOCK - (size % BLOCK)) % BLOCK;
    const type = String.fromCharCode(header[156]!);
    if (type === "L" || type === "x") {
      const body = await input.take(Math.min(size, 65536));
      await input.skip(size - body.length + padding);
      longName = type === "L" ? text(body, 0, body.length) : (paxPath(body) ?? longName);
      continue;
    }
    const prefix = text(header, 345, 155);
    const name = longName ?? (prefix ? `${prefix}/` : "") + text(header, 0, 100);
    longName = null;
    if (type !== "0" && type !== "\0") {
      await input.skip(size + padding);
      continue;
    }
    const left = { bytes: size };
    const modifiedMs = 1000 * numberField(header, 136, 12);
    yield { name, sizeBytes: size, modifiedMs, chunks: input.upTo(left) };
    await input.skip(left.bytes + padding);
    if (input.cut) {
      onDefect(`the archive is cut off inside ${name}`);
      return;
    }
  }
}

class ByteQueue {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array(0);
  /** Set when more was asked for than there was. */
  cut = false;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#source = chunks[Symbol.asyncIterator]();
  }

  async #next(): Promise<boolean> {
    while (this.#chunk.length === 0) {
      const { value, done } = await this.#source.next();
      if (done) return false;
      this.#chunk = value;
    }
    return true;
  }

  async take(bytes: number): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    let have = 0;
    while (have < bytes && (await this.#next())) {
      const part = this.#chunk.subarray(0, bytes - have);
      this.#chunk = this.#chunk.subarray(part.length);
      parts.push(part);
      have += part.length;
    }
    return Buffer.concat(parts);
  }

  async skip(bytes: number): Promise<void> {
    let left = bytes;
    while (left > 0) {
      if (!(await this.#next())) {
        this.cut = true;
        return;
      }
      const part = Math.min(left, this.#chunk.length);
      this.#chunk = this.#chunk.subarray(part);
      left -= part;
    }
  }

  async *upTo(left: { bytes: number }): AsyncGenerator<Uint8Array> {
    while (left.bytes > 0 && (await this.#next())) {
      const part = this.#chunk.subarray(0, left.bytes);
      this.#chunk = this.#chunk.subarray(part.length);
      left.bytes -= part.length;
      yield part;
    }
    if (left.bytes > 0) this.cut = true;
  }
}

function text(bytes: Uint8Array, start: number, length: number): string {
  const field = Buffer.from(bytes.subarray(start, start + length));
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? field.length : end);
}

function numberField(header: Uint8Array, start: number, length: number): number {
  if (header[start]! & 0x80) {
    // GNU: base 256, for members of 8 GiB and more.
    let value = header[start]! & 0x7f;
    for (let i = start + 1; i < start + length; i++) value = value * 256 + header[i]!;
    return value;
  }
  const octal = text(header, start, length).trim();
  return octal === "" ? 0 : /^[0-7]+$/.test(octal) ? Number.parseInt(octal, 8) : NaN;
}

function checksumHolds(header: Uint8Array): boolean {
  let sum = 8 * 32;
  for (let i = 0; i < BLOCK; i++) if (i < 148 || i >= 156) sum += header[i]!;
  return sum === numberField(header, 148, 8);
}

function paxPath(body: Uint8Array): string | null {
  return /(?:^|\n)\d+ path=([^\n]*)\n/.exec(Buffer.from(body).toString("utf8"))?.[1] ?? null;
}
