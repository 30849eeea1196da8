import { expect, it } from "vitest";
import { TemplateIndex } from "./template-index.ts";
import { templatesOf } from "./templates.ts";

const NAMES = ["ann", "bob", "cid", "dee", "eve"];
const TEXTS = [
  "opened /data/v1/a.bin in 3 ms (loader.py:17)",
  "ranks [1, 2] joined the ring",
  ...NAMES.map((name) => `letter of ${name} was taken to the box`),
  "done",
];
const { texts, of } = templatesOf(TEXTS.map((text) => ({ text, count: 1 })));
const index = new TemplateIndex(texts);

it("finds the template of every text and of every template", () => {
  expect(TEXTS.map((text) => index.match(text))).toEqual(Array.from(of));
  expect(texts.map((text) => index.match(text))).toEqual(texts.map((_, i) => i));
});

it("knows other releases' paths, lines, versions and lengths", () => {
  expect(index.match("opened /opt/v2/lib/b.bin in 2.5 s (loader.py:231)")).toBe(of[0]);
  expect(index.match("ranks [1, 2, 3, 4] joined the ring")).toBe(of[1]);
  expect(index.match("Ranks 7 joined the ring.")).toBe(of[1]);
});

it("lets any word stand in a wildcard's place, and only there", () => {
  expect(index.match("letter of zoe was taken to the box")).toBe(of[2]);
  expect(index.match("letter of 17 was taken to the box")).toBe(of[2]);
  expect(index.match("letter of zoe was taken to the shed")).toBe(-1);
  expect(index.match("letter of failure was taken to the box")).toBe(-1);
});

it("knows nothing of other texts", () => {
  expect(index.match("closed /data/v1/a.bin in 3 ms (loader.py:17)")).toBe(-1);
  expect(index.match("undone")).toBe(-1);
  expect(index.match("Done")).toBe(-1);
  expect(index.match("")).toBe(-1);
  expect(new TemplateIndex([]).match("done")).toBe(-1);
});

it("takes no unknown words for equal", () => {
  const one = new TemplateIndex(["the cat sat down"]);
  expect(one.match("the dog sat down")).toBe(-1);
});
