import { h, Fragment } from "preact";
import { renderToString } from "preact-render-to-string";
import { describe, expect, test } from "vitest";
import { guardText, MOST_CHARS, plain } from "./plain.ts";

guardText();
guardText();

describe("text of strangers", () => {
  test("shows what would turn the reading direction, and keeps tabs and line ends", () => {
    expect(plain("a\u202eb\u0007c\ud800d\n\te")).toBe("a\uFFFDb\uFFFDc\uFFFDd\n\te");
  });

  test("is cut before anything else looks at it, also between surrogates", () => {
    expect(plain("😀😀", 3)).toBe("😀\uFFFD…");
    expect(plain("x".repeat(1_000_000)).length).toBe(MOST_CHARS + 1);
  });

  test("is plain in every element, attribute, fragment and list, without anybody asking", () => {
    const bad = "a\u202eb";
    const node = h(
      Fragment,
      null,
      bad,
      h("p", { title: bad, "aria-label": bad }, [bad, [bad, 1]], h("b", null, bad)),
    );
    const text = renderToString(node);
    expect(text).not.toContain("\u202e");
    expect(text.match(/a\uFFFDb/g)).toHaveLength(6);
  });

  test("does not change the data that it came from", () => {
    const lines = ["a\u202eb"];
    renderToString(h("p", null, lines));
    expect(lines).toEqual(["a\u202eb"]);
  });

  test("never becomes an address that runs", () => {
    for (const href of ["javascript:alert(1)", " java\tscript:alert(1)", "JavaScript:x"])
      expect(renderToString(h("a", { href }, "x"))).toBe('<a href="#">x</a>');
    expect(renderToString(h("a", { href: "#/jobs/javascript:1" }, "x"))).toContain("#/jobs/");
  });

  test("leaves paths of drawings whole", () => {
    const d = "M0 0".padEnd(50_000, "h1");
    expect(renderToString(h("path", { d }))).toContain(d);
  });
});
