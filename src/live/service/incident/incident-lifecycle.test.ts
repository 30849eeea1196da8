import { expect, it } from "vitest";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import {
  accusesSame,
  confirmed,
  ended,
  relapsed,
  resolved,
  suspected,
} from "./incident-lifecycle.ts";

const of = (change: Partial<Suspect>): Verdict => {
  const suspect = {
    type: "rank",
    name: null,
    ranks: [3],
    machine: "node000",
    cause: "gpu-slow",
    ...change,
  };
  return { suspects: [suspect] } as unknown as Verdict;
};

it("stays a crash where evidence says that the others hang because of it", () => {
  const about = { job: "job", run: "run", kind: "crash", summary: "" } as const;
  const incident = suspected({ ...about, onsetMs: 0, nowMs: 1000, fromIteration: 1 });
  expect(confirmed(incident, { ...of({}), kind: "hang" }, 2000).kind).toBe("crash");
});

it("keeps when somebody was first named, until it comes back", () => {
  const about = { job: "job", run: "run", kind: "fail-slow", summary: "" } as const;
  const incident = suspected({ ...about, onsetMs: 0, nowMs: 1000, fromIteration: 1 });
  const nobody = confirmed(incident, { ...of({}), suspects: [] }, 2000);
  expect(nobody.namedMs).toBeUndefined();
  const named = confirmed(confirmed(nobody, of({}), 3000), of({}), 9000);
  expect(named).toMatchObject({ namedMs: 3000, changedMs: 9000 });
  const again = relapsed(resolved(named, 10_000, ""), of({}), 50, 20_000);
  expect(again.namedMs).toBe(20_000);
});

it("says of a hang that is over who it was in the words of the answer", () => {
  const about = { job: "job", run: "run", kind: "hang", summary: "" } as const;
  const incident = suspected({ ...about, onsetMs: 0, nowMs: 1000, fromIteration: 1 });
  const who = "the link between rank 1 on node000 and rank 9 on node001";
  const answer = {
    who,
    what: "cannot communicate",
    effect: "hangs the job",
    slower: null,
    isSeen: true,
    waiting: null,
    where: [],
    device: null,
  };
  const link = { type: "link", link: ["rank:1", "rank:9"], ranks: [1, 9], machine: null } as const;
  const { summary } = ended(
    confirmed(incident, { ...of(link), summary: "", answer }, 2000),
    9000,
    "passed",
    "",
  );
  expect(summary).toContain(`the job stood still because of ${who} from`);
});

it("of a link is an incident of the machines at both of its ends", () => {
  const about = { job: "job", run: "run", kind: "fail-slow", summary: "" } as const;
  const incident = suspected({ ...about, onsetMs: 0, nowMs: 1000, fromIteration: 1 });
  const machines = ["node004", "node006"];
  const link = of({ type: "link", ranks: [34, 50], machine: null, machines });
  expect(confirmed(incident, link, 2000).machines).toEqual(machines);
});

it("comes back where the same is wrong with the same", () => {
  expect(accusesSame(of({}), of({ ranks: [3, 4] }))).toBe(true);
  const whole = { type: "machine", ranks: [] } as const;
  expect(accusesSame(of(whole), of(whole))).toBe(true);
});

it("is another incident where something else is wrong, or with somebody else of the same machine", () => {
  expect(accusesSame(of({}), of({ cause: "dataloader" }))).toBe(false);
  expect(accusesSame(of({}), of({ ranks: [4] }))).toBe(false);
  expect(accusesSame(of({}), null)).toBe(false);
});

it("is another incident where a link shares a rank with another link, or with a NIC", () => {
  const network = { machine: null, cause: "network-slow" } as const;
  const link = of({ ...network, type: "link", ranks: [34, 50] });
  expect(accusesSame(link, of({ ...network, type: "link", ranks: [50, 34] }))).toBe(true);
  expect(accusesSame(link, of({ ...network, type: "link", ranks: [34, 18] }))).toBe(false);
  expect(accusesSame(link, of({ ...network, type: "nic", ranks: [50] }))).toBe(false);
});
