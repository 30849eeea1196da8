import { describe, expect, it } from "vitest";
import { UserError } from "../base/errors.ts";
import { parseClickHouseUrl } from "./clickhouse-connect.ts";
import { sqlCount, sqlNumber, sqlText } from "./clickhouse-text.ts";
import { RowReader, RowWriter } from "./row-binary.ts";

describe("values in SQL", () => {
  it("leaves plain names readable, and makes digits of all else", () => {
    expect(sqlText("node-001.rack_2")).toBe("'node-001.rack_2'");
    expect(sqlText("")).toBe("''");
    for (const text of ["it's", "a\\", "nul\0", "x\n", "漢", "') OR 1=1 --", "a".repeat(300)]) {
      expect(sqlText(text)).toMatch(/^unhex\('[0-9A-F]+'\)$/);
      const digits = /'(.*)'/.exec(sqlText(text))![1]!;
      expect(Buffer.from(digits, "hex").toString()).toBe(text);
    }
  });

  it("lets nothing but numbers through", () => {
    expect([sqlNumber(-1.5), sqlNumber(1e300), sqlCount(7)]).toEqual(["-1.5", "1e+300", "7"]);
    for (const value of [Number.NaN, Infinity, -Infinity]) {
      expect(() => sqlNumber(value)).toThrow(RangeError);
      expect(() => sqlCount(value)).toThrow(RangeError);
    }
    expect(() => sqlCount(-1)).toThrow(RangeError);
    expect(() => sqlCount(1.5)).toThrow(RangeError);
  });
});

describe("rows in binary", () => {
  it("come back as they were", () => {
    const long = "é".repeat(20_000);
    const bytes = new RowWriter(1).text("").text(long).texts(["a", "\0"]).float64(-0).written();
    const reader = new RowReader(bytes);
    expect([reader.text(), reader.text(), reader.texts()]).toEqual(["", long, ["a", "\0"]]);
    expect(Object.is(reader.float64(), -0)).toBe(true);
    expect(reader.isAtEnd).toBe(true);
  });

  it("that are cut anywhere are an error, never nonsense", () => {
    const bytes = new RowWriter().text("hello").float64(1).written();
    for (let end = 0; end < bytes.length; end++) {
      const reader = new RowReader(bytes.subarray(0, end));
      expect(() => [reader.text(), reader.float64()]).toThrow(RangeError);
    }
    expect(() => new RowReader(Buffer.alloc(20, 255)).text()).toThrow(RangeError);
  });
});

describe("an address of ClickHouse", () => {
  it("has defaults, and TLS by its name", () => {
    expect(parseClickHouseUrl("clickhouse://h")).toEqual({
      url: "http://h:8123",
      username: "default",
      password: "",
      database: "default",
      name: "ClickHouse at h:8123",
    });
    expect(parseClickHouseUrl("clickhouses://u:p%40s@[::1]/db")).toMatchObject({
      url: "https://[::1]:8443",
      username: "u",
      password: "p@s",
      database: "db",
    });
  });

  it.each(["", "nonsense", "http://h", "clickhouse://", "clickhouse://h/?x=1", "clickhouse://h/%"])(
    "%j is refused",
    (text) => {
      expect(() => parseClickHouseUrl(text)).toThrow(UserError);
    },
  );
});
