import { expect, it } from "vitest";
import { machinesIn, placedJobOf, placedJobs, savedMachines } from "./job-machines.ts";

const machines = new Map([
  ["n1", { stage: "stage 0", ranks: [{ rank: 0, gpu: 0 }] }],
  ["n2", { stage: "stage 1", ranks: [{ rank: 1, gpu: 0 }] }],
  ["n3", { stage: "stage 0", ranks: [{ rank: 2, gpu: 0 }] }],
]);
const document = {
  job: "a",
  run: "r",
  startedMs: 5,
  seenMs: 100,
  machines: savedMachines(machines),
};

it("a job's document tells other services where it runs", () => {
  expect(placedJobOf(JSON.parse(JSON.stringify(document)), 50)).toEqual({
    job: "a",
    run: "r",
    startedMs: 5,
    machines: new Map([...machines].map(([name, { stage }]) => [name, { stage, ranks: [] }])),
  });
});

it("documents of older services, ended jobs and jobs long unheard of name no machines", () => {
  const { machines: _, ...older } = document;
  expect(placedJobOf(older, 50)).toBeNull();
  expect(placedJobOf({ ...document, hasEnded: true }, 50)).toBeNull();
  // Over, but its machines are still known by name.
  expect(machinesIn({ ...document, hasEnded: true }).length).toBeGreaterThan(0);
  for (const strange of [null, 7, { machines: "x" }, { machines: [null, { machines: [1] }] }])
    expect(machinesIn(strange)).toEqual([]);
  expect(placedJobOf(document, 101)).toBeNull();
  for (const odd of [null, 3, { ...document, machines: [null, { machines: 4 }] }])
    expect(placedJobOf(odd, 0)).toBeNull();
});

it("all jobs of the site count, whichever service watches them", async () => {
  const own = { job: "b", run: "r", startedMs: 0, machines };
  const coordinator = {
    list: async () => ["a", "b", "machines-of-the-site"],
    read: async (job: string) => (job === "a" ? document : null),
  };
  const jobs = await placedJobs(new Map([["b", { placed: () => own }]]), coordinator, 50);
  expect(jobs?.map(({ job }) => job)).toEqual(["b", "a"]);
  const nobody = { list: async () => ["machines-of-the-site"], read: async () => null };
  expect(await placedJobs(new Map(), nobody, 0)).toBeNull();
});
