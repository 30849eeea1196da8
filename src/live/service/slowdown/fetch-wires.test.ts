import { expect, it } from "vitest";
import type { LiveJob } from "../../../ingest/live-job.ts";
import type { AgentReply, AgentRequest } from "../../wire/messages.ts";
import { fetchWireTimes } from "./fetch-wires.ts";
import type { JobRun } from "../job/job-run.ts";

/** Two ranks an agent; a ring of four, in the order of its members, and the group of all. */
const RING = [0, 2, 3, 1];
const run = {
  job: "job",
  ranks: new Map(
    [0, 1, 2, 3].map((rank) => [rank, { agent: `a${rank >> 1}`, agentRun: "r", report: { rank } }]),
  ),
} as unknown as JobRun;
const live = {
  job: { groups: [{ ranks: [0, 1, 2, 3] }, { ranks: RING }] },
  groupIds: new Map([0, 1, 2, 3].map((rank) => [rank, Int32Array.of(0, 1)])),
} as unknown as LiveJob;

function wire(...entries: [rank: number, group: number, peer: number, ...ms: number[]][]) {
  return {
    kind: "wire",
    rank: Int32Array.from(entries, ([rank]) => rank),
    group: Int32Array.from(entries, ([, group]) => group),
    peer: Int32Array.from(entries, ([, , peer]) => peer),
    ms: Float32Array.from(entries.flatMap(([, , , ...ms]) => ms)),
  } satisfies AgentReply;
}

it("adds up what agents know to be on the wire between two ranks, and asks those alone that can tell", async () => {
  const asked: [string, AgentRequest][] = [];
  const replies: Record<string, AgentReply> = {
    // To the second of the ring, by place; to rank 2 in another group; to nobody of the ring; of another agent's rank.
    a0: wire(
      [0, 1, -3, 5, NaN],
      [0, 0, 2, 1, 2],
      [1, 1, -9, 7, 7],
      [3, 1, 1, 7, 7],
      [1, 1, 1, 7, 7],
    ),
    a1: wire([3, 1, 1, 3, 4]),
  };
  const iterations = Float64Array.of(2, 3);
  const fetched = (knows: (agent: string) => boolean) =>
    fetchWireTimes(run, live, iterations, {
      ask: (agent, request) => {
        asked.push([agent, request]);
        return Promise.resolve(replies[agent]!);
      },
      canAsk: (agent, word) => word === "wire" && knows(agent),
    });
  expect(await fetched(() => true)).toEqual({
    iterations,
    links: [
      { from: 0, to: 2, ms: Float64Array.of(6, 2) },
      { from: 3, to: 1, ms: Float64Array.of(3, 4) },
    ],
  });
  expect(asked[0]).toEqual([
    "a0",
    { ask: "wire", job: "job", run: "r", ranks: [0, 1], iterations: [2, 3] },
  ]);
  asked.length = 0;
  const { links } = await fetched((agent) => agent === "a1");
  expect(links.map(({ from, to }) => [from, to])).toEqual([[3, 1]]);
  expect(asked.map(([agent]) => agent)).toEqual(["a1"]);
});
