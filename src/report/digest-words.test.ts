import { expect, it } from "vitest";
import type { Digest } from "../model/digest.ts";
import { digestMarkdown, digestText } from "./digest-words.ts";

const share = (name: string, incidents = 1) => ({ name, incidents, wastedGpuMs: 5_400_000 });
const digest: Digest = {
  fromMs: Date.UTC(2026, 10, 9),
  toMs: Date.UTC(2026, 10, 16, 8),
  incidents: 1,
  wastedGpuMs: 5_400_000,
  byCause: [share("gpu-slow")],
  byMachine: Array.from({ length: 7 }, (_, i) => share(`node${i}`, 2)),
  repeated: [],
  judged: { right: 1, wrong: 1 },
  isCut: false,
};

it("is plain lines for a chat, the costliest of each list", () => {
  expect(digestText(digest)).toBe(`Faultline, 2026-11-09 to 2026-11-16
1 incident, 1.5 GPU hours lost.

By cause
• gpu-slow: 1.5 GPU hours, 1 incident

By machine
• node0: 1.5 GPU hours, 2 incidents
• node1: 1.5 GPU hours, 2 incidents
• node2: 1.5 GPU hours, 2 incidents
• node3: 1.5 GPU hours, 2 incidents
• node4: 1.5 GPU hours, 2 incidents
and 2 more

Of 2 answers that people judged, 1 was right.`);
});

it("is Markdown in which no name is markup", () => {
  const text = digestMarkdown({ ...digest, byMachine: [share("a|b\n<img>[x](y)")], isCut: true });
  expect(text).toContain("1 incident, 1.5 GPU hours lost (the newest incidents only).");
  expect(text).toContain("| gpu-slow | 1 | 1.5 GPU hours |");
  expect(text).not.toMatch(/[^\\](?:<img|\[x)|\n</);
});
