import { expect, it } from "vitest";
import { headerOf, readWith } from "./prefix-header.ts";
import type { LinePrefix } from "./line-prefix.ts";
import { newPrefix, readPrefix } from "./prefix.ts";

function lines(count: number, make: (i: number) => string): string[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

const WORDS = [
  "opened the door",
  "closed it",
  "painted all walls",
  "swept",
  "mopped",
  "left early",
];

/** A line of a file of which these lines are known. */
function read(sample: readonly string[], line: string, out: LinePrefix): void {
  const header = headerOf(sample);
  if (header) readWith(header, line, out);
  else readPrefix(line, out);
}

function textOf(sample: string[], line: string): string {
  const out = newPrefix();
  read(sample, line, out);
  return line.slice(out.contentStart);
}

it("knows padded labels of tasks by their number", () => {
  const sample = lines(60, (i) => `${String(i % 12).padStart(2)}: ${WORDS[i % 6]}`);
  // A line alone tells it, so a header has nothing to add.
  expect(headerOf(sample)).toBeNull();
  const out = newPrefix();
  const line = " 7: [2031-05-06 07:08:09] [INFO] [a.py:1:f] swept";
  read(sample, line, out);
  expect(line.slice(out.contentStart)).toBe("swept");
  expect(line.slice(out.writerFrom, out.writerTo)).toBe("7");
  expect(line.slice(out.stampFrom, out.stampFrom + 4)).toBe("2031");
});

it("takes a list for no labels", () => {
  expect(headerOf(lines(60, (i) => ` ${i}: ${WORDS[i % 6]}`))).toBeNull();
});

it("finds the column of levels", () => {
  const stamp = "2031-05-06 07:08:09";
  const sample = lines(60, (i) => `${stamp} painter of walls INFO ${WORDS[i % 6]}`);
  expect(textOf([], sample[0]!)).toBe("painter of walls INFO opened the door");
  expect(textOf(sample, sample[0]!)).toBe("opened the door");
});

it("finds the dash that ends every header", () => {
  const sample = lines(60, (i) => `[05.06 07:08:09] app${i % 3}.exe - ${WORDS[i % 6]}`);
  expect(textOf(sample, "[05.06 07:08:09] other.exe *64 - swept")).toBe("swept");
  expect(textOf([], "[05.06 07:08:09] other.exe *64 - swept")).toBe("other.exe *64 - swept");
});

it("skips a column of numbers only where lines differ", () => {
  const varied = lines(60, (i) => `2031-05-06 07:08:09 ${400 + i} ${WORDS[i % 6]}`);
  expect(textOf(varied, varied[0]!)).toBe("opened the door");
  const same = lines(60, (i) => `2031-05-06 07:08:09 ${400 + i} walls painted`);
  expect(textOf(same, same[0]!)).toBe("400 walls painted");
});

it("has nothing to say about few or plain lines", () => {
  expect(headerOf(["3: a", "3: b"])).toBeNull();
  expect(headerOf(lines(60, (i) => `Epoch: ${i}`))).toBeNull();
});
