import { expect, test } from "vitest";
import { unfolded } from "./unfolded.ts";

test("a traceback inside a JSON value becomes lines behind the rest of the object", () => {
  const value =
    "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nKeyError: 'a\\b'";
  const line = JSON.stringify({ level: "ERROR", message: "Uncaught", exc_info: value, rank: 3 });
  expect(unfolded(line)).toEqual([
    '{"level":"ERROR","message":"Uncaught","exc_info":"","rank":3}',
    "Traceback (most recent call last):",
    '  File "t.py", line 3, in f',
    "KeyError: 'a\\b'",
  ]);
});

test("words before the traceback in the same value are lines, too", () => {
  const line = JSON.stringify({ msg: "step failed\nTraceback (most recent call last):\nX: y" });
  expect(unfolded(line).slice(1)).toEqual([
    "step failed",
    "Traceback (most recent call last):",
    "X: y",
  ]);
});

test("a line that was cut inside the value, and one without any, are no trouble", () => {
  expect(unfolded('{"e": "Traceback (most recent call last):\\n  File').length).toBe(3);
  expect(unfolded('{"e": 1} Traceback')).toEqual([]);
});
