import { describe, expect, it } from "vitest";
import { templatesOf } from "./templates.ts";
import { processorMs } from "../../../../test/support/processor-time.ts";

function groups(texts: readonly string[]) {
  const templates = templatesOf(texts.map((text) => ({ text, count: 1 })));
  return { ...templates, groups: Array.from(templates.of) };
}

function together(texts: readonly string[]): boolean {
  return new Set(groups(texts).groups).size === 1;
}

describe("templatesOf", () => {
  it("makes one of what differs in variables only", () => {
    expect(together(["sent 3 to 10.1.2.3 in 5 ms", "sent 17 to 10.9.9.9 in 2.5 s"])).toBe(true);
    expect(together(["opened the door", "closed the door"])).toBe(false);
  });

  it("counts a mask as a match, however many of them a line has", () => {
    const row = (n: number) => `loss ${n} lr ${n} norm ${n} skipped ${n} nan ${n}`;
    expect(together([row(1), row(2), row(30)])).toBe(true);
  });

  it("makes lists of any length one", () => {
    expect(
      together(["ranks [1] are late", "ranks [1, 2, 3] are late", "ranks [4, 5] are late"]),
    ).toBe(true);
    expect(together(["freed b_1 b_2", "freed b_3 b_4 b_5 b_6"])).toBe(true);
    expect(together(["slot 1 ok, slot 2 ok", "slot 1 ok, slot 2 ok, slot 3 ok, slot 4 ok"])).toBe(
      true,
    );
    expect(together(["missing keys: wa, wb, wc", "missing keys: wx, wy, wz, wq, wp"])).toBe(true);
  });

  it("finds words that vary by their number and what is around them", () => {
    const names = ["ann", "bob", "cid", "dee", "eve", "fay"];
    const { groups: of, texts } = groups(
      names.map((name) => `letter of ${name} was taken to the box`),
    );
    expect(new Set(of).size).toBe(1);
    expect(texts[0]).toBe("letter of <*> was taken to the box");
    // Three are too few to tell a variable from three events.
    expect(
      new Set(groups(names.slice(0, 3).map((n) => `letter of ${n} was lost at sea`)).groups).size,
    ).toBe(3);
    // Too little stays the same around it.
    expect(new Set(groups(names.map((name) => `${name} has left`)).groups).size).toBe(6);
  });

  it("expects names behind words that announce them, and states to differ", () => {
    expect(
      together(["session opened for user ann by us", "session opened for user bob by us"]),
    ).toBe(true);
    const states = ["Started", "Paused", "Resumed", "Stopped", "Suspended", "Destroyed"];
    expect(new Set(groups(states.map((s) => `the big machine was ${s} (event)`)).groups).size).toBe(
      6,
    );
  });

  it("knows a variable's place by the numbers that stand there elsewhere", () => {
    const texts = ["login of a guest from 10.1.2.3 failed", "login of a guest from attic failed"];
    expect(together(texts)).toBe(true);
    expect(groups(texts).texts[0]).toBe("login of a guest from <*> failed");
  });

  it("keeps the exception apart where nearly all lines have one word", () => {
    const groupsOf = (word: string, often: number, rare: number): number => {
      const text = (name: string): string => `session 17 was opened by ${word} ${name}`;
      const shapes = [
        { text: text("Updater"), count: often },
        { text: text("Backup"), count: rare },
      ];
      return new Set(templatesOf(shapes).of).size;
    };
    expect(groupsOf("client", 600, 1)).toBe(2);
    expect(groupsOf("client", 600, 60)).toBe(1);
    expect(groupsOf("user", 600, 1)).toBe(1);
  });

  it("never takes a word of failure for a variable", () => {
    const states = ["4", "red", "blue", "green", "white", "black", "failed", "nan"];
    const { groups: of } = groups(states.map((word) => `the lamp of the shed is ${word} now`));
    expect(new Set(of.slice(0, 6)).size).toBe(1);
    expect(new Set(of).size).toBe(3);
  });

  it("does not depend on the order", () => {
    const texts = [
      ...["ann", "bob", "cid", "dee", "eve"].map((n) => `letter of ${n} was taken to the box`),
      ...["3", "44", "5"].map((n) => `box ${n} is full`),
      "box is empty",
    ];
    const sizes = (list: readonly string[]) => {
      const { groups: of } = groups(list);
      return new Map(list.map((text, i) => [text, of.filter((g) => g === of[i]).length]));
    };
    expect(sizes(texts.toReversed())).toEqual(sizes(texts));
  });

  it("keeps a template's id when it becomes more general", () => {
    const names = ["ann", "bob", "cid", "dee", "eve"];
    const texts = names.map((name) => `letter of ${name} was taken to the box`);
    const before = groups(texts.slice(0, 1));
    const after = groups(texts);
    expect(after.texts[after.groups[0]!]).not.toBe(before.texts[0]);
    expect(after.ids[after.groups[0]!]).toBe(before.ids[0]);
    expect(groups(["box 3 is full"]).ids).toEqual(groups(["box 88 is full"]).ids);
    expect(new Set(groups(["box 3 is full", "box 3 is dry"]).ids).size).toBe(2);
  });

  it("copes with nothing and with odd lines", () => {
    expect(groups([]).texts).toEqual([]);
    const odd = ["", "   ", "-----", "....", "=== 1 ===", "\u0000\u0001", "é".repeat(3000)];
    expect(groups(odd).groups).toHaveLength(odd.length);
  });

  it("does not take quadratic time", () => {
    const words = ["walls", "doors", "roofs", "lamps"];
    const texts = Array.from(
      { length: 20_000 },
      (_, i) => `w${(i * 7919).toString(36).replaceAll(/\d/g, "q")} ${words[i % 4]} are ${i} high`,
    );
    expect(processorMs(() => groups(texts))).toBeLessThan(10_000);
  });
});
