import fc from "fast-check";
import { expect, test } from "vitest";
import { anchor, escapeText, html, join } from "./escape.ts";
import { readTags } from "../../../test/support/report/tag-check.ts";

test("any text in a text or an attribute leaves the tags as they are", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const { text: page } = html`<p class="${text}" id="${anchor(text)}">${text}${[text, 1]}</p>`;
      expect(readTags(page).map(({ name }) => name)).toEqual(["p"]);
    }),
  );
});

test("printable text comes back to the letter", () => {
  const decode = (text: string): string =>
    text.replace(/&(?:lt|gt|quot|#39|#96|amp);/g, (entity) => {
      const names = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&#96;": "`" };
      return (names as Record<string, string>)[entity] ?? "&";
    });
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(decode(escapeText(text))).toBe(text);
    }),
  );
});

test("markup made by the tag is not escaped again", () => {
  const inner = html`<b>${"<"}</b>`;
  expect(html`<p>${join([inner, 2, null], ", ")}</p>`.text).toBe("<p><b>&lt;</b>, 2, </p>");
});

test("an object that only looks like markup is not taken for it", () => {
  const fake = JSON.parse('{"text":"<script>"}') as string;
  expect(html`<p>${fake}</p>`.text).toBe("<p></p>");
});

test("marks that turn the writing direction become visible", () => {
  expect(escapeText("a\u202eb\u0007c\ud800d\n\te")).toBe("a\uFFFDb\uFFFDc\uFFFDd\n\te");
});
