import { expect, it } from "vitest";
import { liveJob } from "./live-job.ts";

it("knows the process of each rank, which commands name", () => {
  const place = { machine: "node000", nic: null, leaf: null, stage: null, groups: [] };
  const ranks = [
    { ...place, rank: 0, gpu: 0, pid: 705 },
    { ...place, rank: 1, gpu: 1, pid: null },
  ];
  const { job } = liveJob("llm", 2, ranks, null);
  expect([...job.ranks.values()].map(({ pid }) => pid)).toEqual([705, null]);
});
