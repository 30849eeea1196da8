import { describe, expect, it } from "vitest";
import { UserError } from "../../base/errors.ts";
import { parseMatchers, selector } from "./matchers.ts";

describe("parseMatchers", () => {
  it("reads what PromQL allows", () => {
    expect(parseMatchers("")).toEqual([]);
    expect(parseMatchers(" {} ")).toEqual([]);
    expect(
      parseMatchers(`{job="train", cluster =~ 'a.*|\\'b', x!="\\"}\\n", y!~\`\\d{2}\`,}`),
    ).toEqual([
      { label: "job", op: "=", value: "train" },
      { label: "cluster", op: "=~", value: "a.*|'b" },
      { label: "x", op: "!=", value: '"}\n' },
      { label: "y", op: "!~", value: "\\d{2}" },
    ]);
  });

  it("writes it again in the same sense", () => {
    const text = 'job="a\\"b\\\\c\\n"';
    expect(selector("up", parseMatchers(text))).toBe(`up{${text}}`);
    expect(selector("up", [])).toBe("up");
    expect(selector("", parseMatchers("a=~'x.*'"))).toBe('{a=~"x.*"}');
  });

  it.each([
    "job=train",
    'job "train"',
    'job=="train"',
    'job="train',
    'job="a" cluster="b"',
    ',job="a"',
    '1job="a"',
    "job",
    'job="a"}',
    '__name__="up"',
  ])("refuses %s in a sentence", (text) => {
    try {
      parseMatchers(text);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ exitCode: 2 });
      expect((error as Error).message).toContain(`--match ${text}`);
    }
  });
});
