import { describe, expect, test } from "vitest";
import type { PyValue } from "./pickle-writer.ts";
import { pickle, PyFloat, PyShared, PyTuple } from "./pickle-writer.ts";

const hex = (value: PyValue): string => Buffer.from(pickle(value)).toString("hex");
/** Hexadecimal bytes, cut where an opcode begins for the reader's sake. */
const bytes = (...parts: string[]): string => parts.join("");
/** The bytes of a value that is no container: without frame and memo of the outermost object. */
const body = (value: PyValue): string => hex(value).slice(4, -2);

describe("the pickle writer", () => {
  test("writes a dict as PyTorch does, its strings and itself memoised", () => {
    const name = Buffer.from("version").toString("hex");
    const two = Buffer.from("2.10").toString("hex");
    expect(hex({ version: "2.10" })).toBe(
      bytes(`80027d28`, `5807000000${name}7100`, `5804000000${two}7101`, `75`, `7102`, `2e`),
    );
  });

  test("picks the shortest int, but eight bytes for everything beyond 32 bits", () => {
    expect(body(0)).toBe("4b00");
    expect(body(255)).toBe("4bff");
    expect(body(256)).toBe("4d0001");
    expect(body(65535)).toBe("4dffff");
    expect(body(65536)).toBe("4a00000100");
    expect(body(-1)).toBe("4affffffff");
    expect(body(2 ** 31)).toBe("8a080000008000000000");
    // As it stands in the recording hang3, rank 0, first time_created_ns.
    expect(body(1794703303278446663n)).toBe(bytes("8a08", "47c821452511e818"));
  });

  test("writes floats big-endian, and the constants", () => {
    expect(body(new PyFloat(766.0615234375))).toBe(bytes("47", "4087f07e00000000"));
    expect(body(true)).toBe("88");
    expect(body(false)).toBe("89");
    expect(body(null)).toBe("4e");
  });

  test("fills lists by APPENDS even when they are empty, and tuples by their length", () => {
    expect(hex([])).toBe(bytes("80025d2865", "7100", "2e"));
    expect(hex([1, [2]])).toBe(bytes("80025d28", "4b01", "5d284b0265", "65", "7100", "2e"));
    const tuple = (n: number): string => body(new PyTuple(Array.from({ length: n }, () => 1)));
    expect(tuple(0)).toBe(bytes("29", "7100"));
    expect(tuple(2)).toBe(bytes("4b014b0186", "7100"));
    expect(tuple(4)).toBe(bytes("28", "4b014b014b014b01", "74", "7100"));
  });

  test("refers to a string it has written, with the long form from number 256 on", () => {
    const texts = Array.from({ length: 300 }, (_, i) => `s${i}`);
    const end = hex([...texts, "s1", "s299"]).slice(-28);
    expect(end).toBe(bytes("6801", "6a2b010000", "65", "722c010000", "2e"));
  });

  test("memoises a container only when it occurs again", () => {
    const frame = new PyShared({ line: 7 });
    frame.uses = 1;
    expect(hex([frame])).toBe(
      bytes("80025d28", "7d2858040000006c696e6571004b0775", "65", "7101", "2e"),
    );
    const twice = new PyShared({ line: 7 });
    twice.uses = 2;
    expect(hex([twice, twice])).toBe(
      bytes("80025d28", "7d2858040000006c696e6571004b0775", "7101", "6801", "65", "7102", "2e"),
    );
  });

  test("keeps a Map's order, and leaves undefined fields of a record out", () => {
    const map = new Map([
      ["10", 1],
      ["9", 2],
    ]);
    expect(hex(map)).toBe(
      bytes("80027d28", "5802000000313071004b01", "58010000003971014b02", "75", "7102", "2e"),
    );
    expect(hex({ a: undefined, b: 1 })).toBe(
      bytes("80027d28", "58010000006271004b01", "757101", "2e"),
    );
  });

  test("survives strings longer than its buffer", () => {
    const long = "ä".repeat(20_000);
    const written = Buffer.from(pickle([long, long]));
    expect(written.readUInt32LE(5)).toBe(40_000);
    expect(written.length).toBe(2 + 2 + 5 + 40_000 + 2 + 2 + 1 + 2 + 1);
  });
});
