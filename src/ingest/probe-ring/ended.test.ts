import { describe, expect, it } from "vitest";
import type { ProbeProcess } from "../../model/probe.ts";
import { failureOf } from "./ended.ts";

type How = NonNullable<ProbeProcess["ended"]>["how"];

function told(how: How, code: number, writer: ProbeProcess["writer"] = "python", words = "") {
  const ended = { how, code, atNs: 5e9 };
  return failureOf({ ended, words, writer, rank: 2, file: "2.ring", epochNs: 1_000_000_000_000n });
}

describe("how a process ended", () => {
  it("is a failure of its own where the program left with a code", () => {
    for (const writer of ["python", "native"] as const)
      expect(told("exit", 3, writer)).toEqual({
        rank: 2,
        file: "2.ring",
        line: 0,
        timeMs: 1_005_000,
        role: "own",
        cause: "user-program",
        signature: "exit-code",
        text: "exited with code 3",
        at: null,
      });
    expect(told("exit", -1)?.text).toBe("exited with code 255");
  });

  it("is none where the code is 0, or was not noted", () => {
    expect(told("exit", 0)).toBeNull();
    expect(told("exit", 0, "native")).toBeNull();
    expect(told("exit", 256)).toBeNull();
  });

  it("leaves to the Python ring whether code 1 was an exception", () => {
    expect(told("exit", 1, "native")).toBeNull();
    expect(told("exit", 1)?.signature).toBe("exit-code");
    expect(told("exception", 1, "python", "KeyError: 'loss'")?.signature).toBe("python.key-error");
  });

  it("is an echo where a handler left because it was told to", () => {
    expect(told("exit", 143)).toMatchObject({ role: "echo", text: "received SIGTERM" });
    expect(told("signal", 15)).toMatchObject({ role: "echo", text: "received SIGTERM" });
    expect(told("exit", 137)?.role).toBe("own");
  });
});
