import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { looksStamped, parseStamp, resolveStamp } from "./log-time.ts";

const NOON = Date.UTC(2026, 10, 15, 12, 30, 5);

describe("times in logs", () => {
  it.each([
    ["2026-11-15 12:30:05.624 [INFO] x", NOON + 624],
    ["2026-11-15 12:30:05,624 - INFO - x", NOON + 624],
    ["[2026-11-15 12:30:05,624] [INFO] [engine.py:1:f] x", NOON + 624],
    ["[2026-11-15 12:30:05] vm:1:1 [0] NCCL WARN x", NOON],
    ["2026-11-15T12:30:05Z x", NOON],
    ["2026-11-15T13:30:05.5+01:00 x", NOON + 500],
    ["2026-11-15T04:30:05.5-0800 x", NOON + 500],
    ["[NeMo I 2026-11-15 12:30:05 exp_manager:386] x", NOON],
    ["[INFO|trainer.py:9] 2026-11-15 12:30:05,001 >> x", NOON + 1],
    ["2026-11-15_12:30:05", NOON],
    ["11/15/2026 12:30:05 - INFO - x", NOON],
    ["[Sun Nov 15 12:30:05 2026] INFO: x", NOON],
    ["slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-15T12:30:05 ***", NOON],
  ])("%s", (line, ms) => {
    const stamp = parseStamp(line);
    expect(stamp).toEqual({ ms, hasYear: true });
  });

  it.each([
    "[E1115 12:30:05.624298464 ProcessGroupNCCL.cpp:689] x",
    "E1115 12:30:05.624000 77 torch/distributed/elastic/multiprocessing/api.py:882] failed",
    "[rank3]:[E1115 12:30:05.624298464 x.cpp:1] y",
  ])("%s needs a year from elsewhere", (line) => {
    const stamp = parseStamp(line);
    expect(resolveStamp(stamp, null)).toBeNull();
    expect(resolveStamp(stamp, Date.UTC(2026, 5, 1))).toBe(NOON + 624);
  });

  it("reads glog's month and day as c10 writes them: without a leading zero", () => {
    const at = (line: string): number | null =>
      resolveStamp(parseStamp(line), Date.UTC(2026, 6, 1));
    expect(at("[E603 17:48:01.5 x.cpp:1]")).toBe(Date.UTC(2026, 5, 3, 17, 48, 1, 500));
    expect(at("[E129 16:38:47.8 x.cpp:1]")).toBe(Date.UTC(2026, 0, 29, 16, 38, 47, 800));
    expect(at("Nov 15 12:30:05 node1 kernel: x")).toBe(NOON);
  });

  it("crosses New Year", () => {
    const before = parseStamp("[I1231 23:59:59.0 x.cpp:1]");
    const after = parseStamp("[I101 00:00:01.0 x.cpp:1]");
    const near = Date.UTC(2026, 0, 1, 0, 0, 0);
    expect(resolveStamp(before, near)).toBe(near - 1000);
    expect(resolveStamp(after, near)).toBe(near + 1000);
  });

  it("reads the common format as the others, whatever its separators and fractions", () => {
    const time = fc.date({
      min: new Date(Date.UTC(2000, 0, 2)),
      max: new Date(Date.UTC(2099, 11, 30)),
      noInvalidDate: true,
    });
    const words = fc.constantFrom("", "[", "[rank3] ", "INFO ");
    fc.assert(
      fc.property(
        time,
        words,
        fc.constantFrom(" ", "T", "_"),
        fc.constantFrom(".", ","),
        (at, before, t, p) => {
          const iso = at.toISOString().replace("T", t).replace(".", p).slice(0, -1);
          expect(parseStamp(`${before}${iso}] x`)).toEqual({ ms: at.getTime(), hasYear: true });
          expect(parseStamp(`${before}${iso}123456 x`)?.ms).toBe(at.getTime());
          const whole = at.getTime() - (at.getTime() % 1000);
          expect(parseStamp(`${before}${iso.slice(0, 19)} x`)?.ms).toBe(whole);
          expect(parseStamp(`${before}${iso}+0100 x`)?.ms).toBeCloseTo(
            at.getTime() - 3_600_000,
            -1,
          );
        },
      ),
    );
  });

  it("finds no time in what is none", () => {
    for (const line of [
      "",
      "iteration 12/2000",
      "10.0.0.1:29500",
      "[E9999 99:99:99.0 x]",
      "2026-13-40 00:00:00",
    ]) {
      expect(parseStamp(line)).toBeNull();
    }
  });

  it("suspects every line that begins with a time", () => {
    for (const line of [
      "2026-11-15 12:30:05 x",
      "[2026-11-15 12:30:05] x",
      "[E603 17:48:01.5 x]",
      "W1115 12:30:05.6 7 x]",
      "Nov 15 12:30:05 node1 kernel: x",
    ]) {
      expect(looksStamped(line)).toBe(true);
    }
    for (const line of ["", "RuntimeError: x", '  File "a.py", line 2020', "Loading 20 shards"]) {
      expect(looksStamped(line)).toBe(false);
    }
  });
});
