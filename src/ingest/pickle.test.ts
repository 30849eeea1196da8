import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BIG, DICT, INT, LIST, STRING, type PickleData } from "./pickle-data.ts";
import { readPickle } from "./pickle.ts";

/** Turns the arena back into plain values, so that a test can compare. */
function plain(data: PickleData, kind: number, num: number, depth = 0): unknown {
  if (depth > 20) return "too deep";
  if (kind === STRING) return data.text(num);
  if (kind === BIG) return data.base + BigInt(num);
  if (kind === DICT) {
    const dict: Record<string, unknown> = {};
    data.forEachItem(num, 2, (item) => {
      const key = String(plain(data, data.items.kind[item]!, data.items.num[item]!));
      dict[key] = plain(data, data.items.kind[item + 1]!, data.items.num[item + 1]!, depth + 1);
    });
    return dict;
  }
  if (kind === LIST || kind === LIST + 1) {
    const list: unknown[] = [];
    data.forEachItem(num, 1, (item) => {
      list.push(plain(data, data.items.kind[item]!, data.items.num[item]!, depth + 1));
    });
    return list;
  }
  return kind === 0 ? null : kind === 1 ? num === 1 : num;
}

function value(bytes: Buffer): unknown {
  const data = readPickle(bytes);
  return plain(data, data.rootKind, data.rootNum);
}

// Written by CPython: pickle.dumps({"a": [1, 300, -5, 1794703303278446663, 2.5, None, True], "b": ("x", "x")}, n)
const SAMPLE = {
  2:
    "80027d71002858010000006171015d7102284b014d2c014afbffffff8a0847c821452511e8184740" +
    "040000000000004e8865580100000062710358010000007871046804867105752e",
  4:
    "80049538000000000000007d94288c0161945d94284b014d2c014afbffffff8a0847c821452511e8" +
    "184740040000000000004e88658c0162948c01789468048694752e",
};

describe("a data pickle", () => {
  it("is read with exact 64-bit integers, memo references and all plain types", () => {
    const expected = { a: [1, 300, -5, 1794703303278446663n, 2.5, null, true], b: ["x", "x"] };
    expect(value(Buffer.from(SAMPLE[2], "hex"))).toEqual(expected);
    expect(value(Buffer.from(SAMPLE[4], "hex"))).toEqual(expected);
  });

  it("keeps items that come in several batches in order", () => {
    // [] APPEND 1, APPENDS (2, 3), APPEND 4
    expect(value(Buffer.from("80025d4b0161284b024b03654b04612e", "hex"))).toEqual([1, 2, 3, 4]);
  });

  it("keeps what came before the end when it is cut off", () => {
    const whole = Buffer.from(SAMPLE[2], "hex");
    for (let end = 0; end < whole.length; end++) {
      const data = readPickle(whole.subarray(0, end));
      expect(data.problem?.kind).toBe("truncated");
    }
    expect(value(whole.subarray(0, 36))).toEqual({ a: [1, 300, -5] });
  });
});

describe("a hostile pickle", () => {
  const hostile: [string, string, string][] = [
    [
      "os.system by GLOBAL and REDUCE",
      "636f730a73797374656d0a2858020000006c73745285522e",
      "GLOBAL",
    ],
    [
      "a global from the stack",
      "80048c026f73948c0673797374656d9493948c026c739485945294 2e".replaceAll(" ", ""),
      "STACK_GLOBAL",
    ],
    ["REDUCE of plain data", "80024b014b02865 22e".replaceAll(" ", ""), "REDUCE"],
    ["BUILD", "80027d7d622e", "BUILD"],
    ["a persistent id", "80024b01512e", "BINPERSID"],
    ["an instance", "2869636f64650a780a2e", "INST"],
  ];
  it.each(hostile)("with %s is refused and nothing of it is used", (_name, hex, opcode) => {
    const { problem, rootKind } = readPickle(Buffer.from(hex, "hex"));
    expect(problem).toMatchObject({ kind: "refused", opcode });
    expect(rootKind).toBe(0);
  });

  it("cannot make us allocate by a huge memo index or length", () => {
    expect(readPickle(Buffer.from("80024b0172ffffffff2e", "hex")).problem?.kind).toBe("malformed");
    expect(readPickle(Buffer.from("800258ffffffff61", "hex")).problem?.kind).toBe("truncated");
    expect(readPickle(Buffer.from("80028bffffff7f00", "hex")).problem?.kind).toBe("malformed");
  });
});

describe("any bytes at all", () => {
  it("never make the reader throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        readPickle(Buffer.from(bytes));
      }),
      { numRuns: 2000, seed: 1 },
    );
  });

  it("not even a real pickle with some of its bytes changed", () => {
    const whole = Buffer.from(SAMPLE[2], "hex");
    const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), (changes) => {
        const bytes = Buffer.from(whole);
        for (const [at, byte] of changes) bytes[at] = byte;
        value(bytes);
      }),
      { numRuns: 3000, seed: 2 },
    );
  });

  it("keeps small integers apart from large ones", () => {
    fc.assert(
      fc.property(fc.bigInt(-(1n << 63n), (1n << 63n) - 1n), (n) => {
        const bytes = Buffer.from("80028a080000000000000000 2e".replaceAll(" ", ""), "hex");
        bytes.writeBigInt64LE(n, 4);
        const data = readPickle(bytes);
        const exact =
          data.rootKind === INT ? BigInt(data.rootNum) : data.base + BigInt(data.rootNum);
        expect(exact).toBe(n);
      }),
      { seed: 3 },
    );
  });
});
