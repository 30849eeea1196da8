import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseEvents, type ServerEvent } from "./sse.ts";

const STREAM =
  "retry: 2000\n\n" +
  'id: b-1\nevent: snapshot\ndata: {"jobs":[]}\n\n' +
  ": still here\n\n" +
  "id: b-2\r\nevent: job\r\ndata: first\r\ndata:second\r\n\r\n" +
  "data\n\nid: b-3\revent: incident\rdata: ünïcode 🙂\r\r" +
  "event: never finished\ndata: x";

const EVENTS: readonly ServerEvent[] = [
  { id: "b-1", type: "snapshot", data: '{"jobs":[]}' },
  { id: "b-2", type: "job", data: "first\nsecond" },
  { id: "b-2", type: "message", data: "" },
  { id: "b-3", type: "incident", data: "ünïcode 🙂" },
];

function readIn(sizes: (at: number) => number): readonly ServerEvent[] {
  const parser = parseEvents();
  const events: ServerEvent[] = [];
  for (let at = 0; at < STREAM.length;) {
    const size = Math.max(1, sizes(at));
    events.push(...parser.push(STREAM.slice(at, at + size)));
    at += size;
  }
  return events;
}

describe("events of the service", () => {
  it.each([1, 2, 3, 7, 64, STREAM.length])("are the same in chunks of %i characters", (size) => {
    expect(readIn(() => size)).toEqual(EVENTS);
  });

  it("are the same wherever the stream is cut in two", () => {
    for (let cut = 1; cut < STREAM.length; cut++)
      expect(readIn((at) => (at === 0 ? cut : STREAM.length))).toEqual(EVENTS);
  });

  it("are the same in any chunks", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (sizes) => {
        let i = 0;
        expect(readIn(() => sizes[i++ % sizes.length]!)).toEqual(EVENTS);
      }),
    );
  });

  it("tell the id to come back with only when they are complete", () => {
    const parser = parseEvents();
    parser.push("id: b-7\ndata: x\n");
    expect(parser.lastId).toBe("");
    parser.push("\n");
    expect(parser.lastId).toBe("b-7");
  });

  it("may not grow without end", () => {
    const parser = parseEvents();
    const chunk = "x".repeat(1 << 20);
    parser.push("data: ");
    expect(() => {
      for (let i = 0; i < 70; i++) parser.push(chunk);
    }).toThrow("too long");
  });

  it("may go on for ever as long as each one ends", () => {
    const parser = parseEvents();
    const chunk = `data: ${"x".repeat(1 << 20)}\n\n: still here\n\n`;
    for (let i = 0; i < 70; i++) expect(parser.push(chunk)).toHaveLength(1);
  });
});
