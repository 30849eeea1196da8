/**
 * ClickHouse's RowBinary: the one format in which numbers keep every bit and text needs no escaping, also with servers
 * of 2018, whose text formats round the last digit of numbers.
 */

/** 2^53 and above would not fit: lengths here are of buffers. */
const MOST_VARINT_BYTES = 8;

export class RowWriter {
  private bytes: Buffer;
  private length = 0;

  constructor(sizeHint = 1024) {
    this.bytes = Buffer.allocUnsafe(sizeHint);
  }

  text(value: string): this {
    const length = Buffer.byteLength(value);
    this.varint(length);
    this.room(length);
    this.length += this.bytes.write(value, this.length);
    return this;
  }

  texts(values: readonly string[]): this {
    this.varint(values.length);
    for (const value of values) this.text(value);
    return this;
  }

  float64(value: number): this {
    this.room(8);
    this.length = this.bytes.writeDoubleLE(value, this.length);
    return this;
  }

  uint64(value: bigint): this {
    this.room(8);
    this.length = this.bytes.writeBigUInt64LE(value, this.length);
    return this;
  }

  written(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  private varint(value: number): void {
    this.room(MOST_VARINT_BYTES);
    let rest = value;
    while (rest >= 0x80) {
      this.bytes[this.length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.bytes[this.length++] = rest;
  }

  private room(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.length + bytes));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}

/** Throws RangeError where the bytes end early. */
export class RowReader {
  private at = 0;
  private readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  text(): string {
    const length = this.varint();
    if (this.at + length > this.bytes.length) throw new RangeError("the answer is cut short");
    const text = this.bytes.toString("utf8", this.at, this.at + length);
    this.at += length;
    return text;
  }

  texts(): string[] {
    const count = this.varint();
    const texts: string[] = [];
    for (let i = 0; i < count; i++) texts.push(this.text());
    return texts;
  }

  float64(): number {
    const value = this.bytes.readDoubleLE(this.at);
    this.at += 8;
    return value;
  }

  private varint(): number {
    let value = 0;
    for (let i = 0; i < MOST_VARINT_BYTES; i++) {
      const byte = this.bytes.readUInt8(this.at++);
      value += (byte & 0x7f) * 0x80 ** i;
      if (byte < 0x80) return value;
    }
    throw new RangeError("the answer has a length beyond all sizes");
  }
}
