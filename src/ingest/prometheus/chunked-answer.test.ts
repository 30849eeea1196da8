import { describe, expect, it } from "vitest";
import type { MetricSet } from "../../model/metrics.ts";
import { LabelledSeries } from "../metrics/labelled-series.ts";
import { MetricSetBuilder } from "../metrics/metric-set-builder.ts";
import { ChunkedAnswer } from "./chunked-answer.ts";
import { ServerFailure } from "./failure.ts";
import { snappy } from "./wire.ts";

/** As Prometheus 2.42 sent it: two series of three chunks each, in two frames. */
const ANSWER = Buffer.from(
  "igIm/pZKCocCCiAKCF9fbmFtZV9fEhREQ0dNX0ZJX0RFVl9HUFVfVVRJTAoICgNncHUSATAKEQoIaG9zdG5hbWUSBW7DtmRlEnIIgLiDofcyELCkrqH3MhgBImAACYDwhsLuZUBYgAAAAAAA6Ac4B+ABMP3/h+ZmZmZmbf/EAaqqqqqqqrwAdgAgcIdONsV5aHwAAAAAACpbcv5JrgvoJtaV////////VpGo/oIAAAAAAAUerRhOcqAAAIASLQi0266k9zIQqN+upPcyGAEiGwAC6LbdyO5lQAkh+1RELRj0A9OlGh+1RELRgBIjCICKl876MhCAipfO+jIYASIRAAGAlK6c9WVAWIAAAAAAAACJAlrudHEKhgIKIAoIX19uYW1lX18SFERDR01fRklfREVWX0dQVV9VVElMCggKA2dwdRIBMQoRCghob3N0bmFtZRIFbsO2ZGUScQiAuIOh9zIQsKSuofcyGAEiXwAJgPCGwu5lQFjAAAAAAADoBziFwAJh+/1JzMzMzMzb/4251VVVVVVVeADteezMzM7pDb8AAAAAAAqW3MP/+3P///do+h////////VpGp/QYAAAAAAAp6tGE5yoAEAgEi0ItNuupPcyEKjfrqT3MhgBIhsAAui23cjuZUAQkP2qIhaM9APTrIUP2qIhaMASIwiAipfO+jIQgIqXzvoyGAEiEQABgJSunPVlQFjAAAAAAAAA",
  "base64",
);
/** The first frame, with its length and checksum. */
const FRAME = 2 + 4 + 0x10a;
const T0 = 1_750_000_000;
/** Less the NaN at 701. */
const TIMES = [0, 1, 2, 3.004, 4, 5.01, 700, 702, 7000.5, 7001, 900_000].map((t) => T0 + t);
const VALUES = [98, 98, 97.5, 0.1, 0.1 + 0.2, -1e-9, 98, 1e13, Math.PI, 98, 98];

function read(bytes: Uint8Array, size: number, startMs = 0, endMs = Infinity): MetricSet {
  const builder = new MetricSetBuilder();
  const answer = new ChunkedAnswer(new LabelledSeries(builder), startMs, endMs);
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = Uint8Array.from(bytes.subarray(at, at + size));
    answer.push(chunk);
    chunk.fill(0);
  }
  answer.end();
  expect(answer).toMatchObject({ badChunks: 0, otherChunks: 0 });
  return builder.finish();
}

describe("ChunkedAnswer", () => {
  it("reads what a server sent, at every size of chunks", () => {
    const set = read(ANSWER, 1 << 20);
    expect(set.machines).toEqual(["nöde"]);
    const [samples] = set.samples;
    expect(samples!.device).toEqual(["gpu0", "gpu1"]);
    expect([...samples!.start]).toEqual([0, 11, 22]);
    expect([...samples!.timeS]).toEqual([...TIMES, ...TIMES]);
    expect([...samples!.value]).toEqual([...VALUES, ...VALUES.map((value) => value + 1)]);
    for (const size of [1, 2, 3, 7, 64]) expect(read(ANSWER, size)).toEqual(set);
  });

  it("cuts chunks at both ends of the time asked for", () => {
    const [samples] = read(ANSWER, 100, (T0 + 4) * 1000, (T0 + 7000.5) * 1000).samples;
    expect([...samples!.timeS.subarray(0, samples!.start[1])]).toEqual(TIMES.slice(4, 9));
  });

  it("knows when the end is missing, and takes nothing that is damaged", () => {
    for (let end = 1; end < ANSWER.length; end++) {
      if (end === FRAME) continue;
      expect(() => read(ANSWER.subarray(0, end), 50)).toThrow(/broke off/);
    }
    for (let at = 0; at < ANSWER.length; at++) {
      const damaged = Buffer.from(ANSWER);
      damaged[at]! ^= 1 << (at % 8);
      const builder = new MetricSetBuilder();
      const answer = new ChunkedAnswer(new LabelledSeries(builder), 0, Infinity);
      const read = (): void => {
        answer.push(damaged);
        answer.end();
      };
      expect(read).toThrow(ServerFailure);
      // Of the damaged frame nothing is taken, of the one before it all.
      expect(builder.counts.samples).toBe(at < FRAME ? 0 : TIMES.length);
    }
  });
});

describe("snappy", () => {
  it("writes literals of any length", () => {
    const content = Buffer.alloc(70_000, 7);
    const written = snappy(content);
    // 70,000 as a varint, a literal of 65,536 bytes, one of the rest.
    expect([...written.subarray(0, 6)]).toEqual([0xf0, 0xa2, 0x04, 0xf4, 0xff, 0xff]);
    expect([...written.subarray(6 + 65_536, 9 + 65_536)]).toEqual([0xf4, 0x6f, 0x11]);
    expect(written.length).toBe(9 + 70_000);
  });
});
