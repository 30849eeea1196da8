import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Prefix, stripAnsi } from "./prefixes.ts";

function read(line: string): Pick<Prefix, "rank" | "local" | "task" | "writer" | "body"> {
  const prefix = new Prefix();
  prefix.read(line);
  const { rank, local, task, writer, body } = prefix;
  return { rank, local, task, writer, body };
}
const nobody = { rank: -1, local: -1, task: -1, writer: "" };

describe("prefixes", () => {
  it.each([
    ["[rank3]: Traceback", { rank: 3, body: "Traceback" }],
    ["[rank12]:[E1115 00:42:01.7 x.cpp:1] y", { rank: 12, body: "[E1115 00:42:01.7 x.cpp:1] y" }],
    ["[rank3]:   File", { rank: 3, body: "  File" }],
    ["[rank: 0] Seed set", { rank: 0, body: "Seed set" }],
    ["[default3]:text", { local: 3, body: "text" }],
    ["[default3]:[rank11]: text", { local: 3, rank: 11, body: "text" }],
    ["[trainer5]:text", { local: 5, body: "text" }],
    ["7: text", { task: 7, body: "text" }],
    ["0: [rank3]: text", { task: 0, rank: 3, body: "text" }],
    ["[1,3]<stderr>:text", { rank: 3, body: "text" }],
    ["(Worker pid=77, ip=10.0.0.1) text", { writer: "pid 77", body: "text" }],
    ["(Worker[rank=8] pid=77) [rank8]:[E129 x", { writer: "pid 77", rank: 8, body: "[E129 x" }],
    ["[host1:0]  File", { writer: "host1:0", body: "  File" }],
    [
      "2026-11-15 00:41:37.4 [INFO] [rank2] hello",
      { rank: 2, body: "2026-11-15 00:41:37.4 [INFO] [rank2] hello" },
    ],
  ])("%s", (line, expected) => {
    expect(read(line)).toEqual({ ...nobody, ...expected });
  });

  it.each([
    "[E1115 00:42:01.7 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught",
    "00:41:37 text",
    "2026-11-15 00:41:37 text",
    "[2026-11-15 00:41:37] text",
    "[INFO] text",
    "(text) in brackets",
    "[rank] text",
    "12:30 lunch",
  ])("%s: nobody's", (line) => {
    expect(read(line)).toEqual({ ...nobody, body: line });
  });

  it("strips colours and titles", () => {
    expect(
      stripAnsi("\u001b[31mred\u001b[0m \u001b[1;32mgreen\u001b[m \u001b]0;title\u0007x"),
    ).toBe("red green x");
    expect(stripAnsi("plain")).toBe("plain");
  });

  it("never throws and never invents text", () => {
    fc.assert(
      fc.property(fc.string(), (line) => {
        expect(line.endsWith(read(line).body)).toBe(true);
      }),
    );
  });
});
