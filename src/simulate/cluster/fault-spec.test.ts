import { describe, expect, test } from "vitest";
import { UserError } from "../../base/errors.ts";
import { simulate } from "./engine.ts";
import { parseFault, SIMULATED_CAUSES } from "./fault-spec.ts";
import { severityAt } from "./faults.ts";
import { completeSpec, type ClusterSpec } from "./spec.ts";

function refusal(attempt: () => unknown): string {
  try {
    attempt();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).exitCode).toBe(2);
    return `${(error as UserError).message} (${(error as UserError).hint})`;
  }
  return "accepted";
}

describe("--fault", () => {
  test("reads the example of the contract", () => {
    expect(parseFault("gpu-slow:rank=17:from=6:severity=2")).toEqual({
      cause: "gpu-slow",
      ranks: [17],
      machine: null,
      link: null,
      switch: null,
      from: 6,
      to: Infinity,
      drawn: false,
      severity: 2,
      cost: 0,
      how: "",
      shape: "steady",
      signature: "",
    });
  });

  test("reads ranks, links, machines, shapes", () => {
    expect(parseFault("gpu-slow:ranks=1,5,9:shape=ramp:to=8:signature=ecc")).toMatchObject({
      ranks: [1, 5, 9],
      shape: "ramp",
      to: 8,
      signature: "ecc",
    });
    expect(parseFault("network-slow:link=node003-leaf0").link).toEqual(["node003", "leaf0"]);
    expect(parseFault("cpu-stall:machine=node001:severity=inf").severity).toBe(Infinity);
  });

  test("names the allowed words where one is off", () => {
    const says = (text: string): string => refusal(() => parseFault(text));
    for (const cause of SIMULATED_CAUSES) expect(says("gremlins:rank=1")).toContain(cause);
    expect(says("gremlins")).toMatch(/unknown cause "gremlins"/);
    // A cause of the contract that the simulator cannot make.
    expect(says("telemetry")).toMatch(/unknown cause "telemetry"/);
    expect(says("gpu-slow:colour=red")).toMatch(/"colour=red" .*keys: rank, .*severity, shape/);
    expect(says("gpu-slow:rank")).toMatch(/"rank" is not KEY=VALUE/);
    expect(says("gpu-slow:rank=x")).toMatch(/"x" is not a rank .*whole number/);
    expect(says("gpu-slow:rank=-1")).toMatch(/"-1" is not a rank/);
    expect(says("gpu-slow:severity=0.5")).toMatch(/severity must be .*at least 1 \(it is "0.5"\)/);
    expect(says("gpu-slow:from=0")).toMatch(/from must be a number of at least 1/);
    expect(says("gpu-slow:from=5:to=4")).toMatch(/to must be a number of at least 5/);
    expect(says("gpu-slow:shape=square")).toMatch(/allowed: steady, spike, fluctuation, ramp/);
    expect(says("gpu-slow:signature=x")).toMatch(/allowed: ecc, pcie, nic-drop, card-drop, nvlink/);
    expect(says("network-slow:link=3")).toMatch(/a link is A-B .*link=3-7/);
  });
});

describe("a fault in a job", () => {
  const job: Partial<ClusterSpec> = { gpus: 16, iterations: 10 };
  const says = (text: string, more: Partial<ClusterSpec> = {}): string =>
    refusal(() => simulate(completeSpec({ ...job, ...more, faults: [parseFault(text)] })));

  test("is refused where the job has no such place", () => {
    expect(says("gpu-slow:rank=16")).toMatch(/rank 16 is out of range \(allowed: 0 to 15\)/);
    expect(says("gpu-slow:machine=node007")).toMatch(/no machine node007 .*node000 to node001/);
    expect(says("network-slow:switch=leaf8")).toMatch(/no switch leaf8 .*leaf0 to leaf7, spine0/);
    expect(says("network-slow:switch=core1")).toMatch(/no switch core1/);
    expect(says("network-slow:link=3-16")).toMatch(/no link 3-16 \(ranks 0 to 15, or a machine/);
    expect(says("network-slow:link=node000-leaf9")).toMatch(/no link node000-leaf9/);
    expect(says("network-slow:link=4-4")).toMatch(/no link 4-4/);
    expect(says("network-slow:link=0-5")).toMatch(/nothing runs between ranks 0 and 5/);
    expect(says("network-slow:link=node000-node002")).toMatch(/no link .*node000 to node001/);
    expect(says("network-slow:link=node000-node000")).toMatch(/no link node000-node000/);
    expect(says("network-slow:link=node000-3")).toMatch(/no link node000-3/);
    expect(says("network-slow:link=node000-node001")).toBe("accepted");
    const four = { gpus: 32, tp: 8, pp: 4, dp: 1 };
    expect(says("network-slow:link=node000-node002", four)).toMatch(
      /nothing runs between machines node000 and node002 .*such as node000-node001/,
    );
  });

  test("is refused where it could not act", () => {
    expect(says("gpu-slow:rank=1:from=11")).toMatch(/starts at iteration 11, .*allowed: 1 to 10/);
    expect(says("gpu-hang")).toMatch(/gpu-hang needs a rank or a machine \(for example/);
    expect(says("dataloader:rank=9")).toMatch(/first pipeline stage .*ranks 0 to 7/);
    expect(says("network-hang:rank=1", { gpus: 8 })).toMatch(/one machine.*more than 8 GPUs/);
    expect(says("network-slow:link=0-1", { gpus: 8 })).toBe("accepted");
  });
});

describe("the shape of a fault", () => {
  const strength = (words: string): number[] =>
    Array.from({ length: 9 }, (_, i) =>
      severityAt(parseFault(`gpu-slow:rank=0:severity=3:${words}`), i + 1, 1),
    );

  test("steady from the first to the last", () => {
    expect(strength("from=3:to=5")).toEqual([1, 1, 3, 3, 3, 1, 1, 1, 1]);
  });
  test("ramp grows to its full strength", () => {
    expect(strength("from=2:to=6:shape=ramp")).toEqual([1, 1.5, 2, 2.5, 3, 3, 1, 1, 1]);
  });
  test("fluctuation comes back every seven iterations", () => {
    expect(strength("from=1:shape=fluctuation")).toEqual([3, 3, 1, 1, 1, 1, 1, 3, 3]);
  });
  test("a spike shows in its first iteration", () => {
    expect(strength("from=4:shape=spike")[3]).toBe(3);
  });
});
