import { describe, expect, it } from "vitest";
import { LAYOUTS, type Fields, underHeader } from "../../../eval/logs/parsing-headers.ts";
import { randomInt, seeded } from "../../base/random.ts";
import type { LinePrefix } from "./line-prefix.ts";
import { headerOf, readWith } from "./prefix-header.ts";
import { newPrefix, readPrefix } from "./prefix.ts";

/** Messages of twelve kinds, among them such as begin with a number, a bracket or a name with a colon. */
const KINDS: readonly ((n: number) => string)[] = [
  (n) => `Fan speeds ( ${3000 + n} ${3100 + n} )`,
  () => "link is up",
  (n) => `${n} requests in the queue`,
  (n) => `[cache] evicted ${n} entries`,
  (n) => `shutdown: reason ${n % 3}`,
  (n) => `opened /data/shard-${n}.bin for reading`,
  () => "no change required",
  (n) => `worker${n % 7} joined`,
  (n) => `took ${n} ms to commit`,
  () => "Lost connection; trying again",
  (n) => `allocated ${n} KB on device ${n % 8}`,
  (n) => `(root) CMD (run ${n})`,
];

function messages(count: number): string[] {
  const random = seeded(5);
  return Array.from({ length: count }, () =>
    KINDS[randomInt(random, KINDS.length)]!(randomInt(random, 5000)),
  );
}

function read(sample: readonly string[], line: string): LinePrefix {
  const out = newPrefix();
  const header = headerOf(sample);
  if (header) readWith(header, line, out);
  else readPrefix(line, out);
  return out;
}

function textsOf(lines: readonly string[]): string[] {
  const header = headerOf(lines);
  return lines.map((line) => {
    const out = newPrefix();
    if (header) readWith(header, line, out);
    else readPrefix(line, out);
    return line.slice(out.contentStart).trimStart();
  });
}

describe("the same messages under another header", () => {
  const contents = messages(300);
  const set = { name: "", lines: contents, contents, events: [] };
  it.each(Object.keys(LAYOUTS).filter((layout) => layout !== "json"))("%s", (layout) => {
    expect(textsOf(underHeader(set, layout).lines)).toEqual(contents);
  });
});

function under(layout: (fields: Fields) => string, contents = messages(200)): string[] {
  const random = seeded(9);
  return contents.map(
    (message, line) => layout({ line, random: (below) => randomInt(random, below) }) + message,
  );
}

it("takes the host, the time and the level from the columns", () => {
  const lines = under(LAYOUTS["id node part state epoch flag"]!);
  const line = "77 node-3 fabric action 1917000000 1 link is up";
  const { hostFrom, hostTo, stampKind, stampFrom } = read(lines, line);
  expect(line.slice(hostFrom, hostTo)).toBe("node-3");
  expect([stampKind, stampFrom]).toEqual(["epoch", line.indexOf("1917")]);
  const padded = under(LAYOUTS["time, padded level, padded part"]!);
  expect(read(padded, padded[0]!.replace(/Info|Warning/, "Error")).level).toBe("error");
});

it("learns from most lines where stacks and prints stand between them", () => {
  const lines = under(LAYOUTS["time level [thread] class:"]!);
  const mixed = lines.flatMap((line, i) =>
    i % 3 === 0 ? [line, "  at run(Task.java:17)", "plain words"] : [line],
  );
  const { contentStart } = read(mixed, lines[0]!);
  expect(lines[0]!.slice(contentStart)).toBe(messages(1)[0]);
  expect(read(mixed, "plain words").contentStart).toBe(0);
});

it("leaves the number of a message that makes up most of the file", () => {
  const contents = Array.from({ length: 300 }, (_, i) =>
    i % 20 === 0 ? messages(300)[i]! : `${i} steps done`,
  );
  const lines = contents.map((text, i) => `2031-05-06 07:08:${10 + (i % 50)} ${text}`);
  expect(textsOf(lines)).toEqual(contents);
});

it("takes keys of settings for no components", () => {
  const contents = Array.from(
    { length: 60 },
    (_, i) => `${"abcdefghij"[i % 10]}${"klmnop"[Math.floor(i / 10)]}: value of this kind ${i}`,
  );
  const lines = contents.map((text) => `2031-05-06 07:08:09 INFO ${text}`);
  expect(textsOf(lines)).toEqual(contents);
});

it("does not cut messages that hold a time", () => {
  const lines = Array.from(
    { length: 60 },
    (_, i) => `checkpoint saved at ${1917000000 + i} as ${i}`,
  );
  expect(textsOf(lines)).toEqual(lines);
});

it("takes no second name behind the file's own", () => {
  const lines = under(LAYOUTS["time level [thread] class:"]!);
  const line =
    "2031-05-06 07:08:09,123 INFO [main] org.example.Master: org.example.Fetcher: is done";
  expect(line.slice(read(lines, line).contentStart)).toBe("org.example.Fetcher: is done");
  const ranked = "2031-05-06 07:08:09,123 INFO [main] org.example.Master: [Rank 3] is done";
  expect(ranked.slice(read(lines, ranked).contentStart)).toBe("is done");
});
