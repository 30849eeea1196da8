/** What a simulated machine says, against the engine's own times. */
import { describe, expect, test } from "vitest";
import { buildJob } from "../../../src/ingest/build-job.ts";
import { readRing } from "../../../src/ingest/probe-ring/read-ring.ts";
import { withIterations } from "../../../src/methods/methods.ts";
import { ask as askMethods } from "../../../src/pipeline/diagnose.ts";
import { fuse } from "../../../src/verdict/fuse.ts";
import { simulate } from "../../../src/simulate/cluster/engine.ts";
import { completeSpec } from "../../../src/simulate/cluster/spec.ts";
import type {
  AgentReply,
  AgentRequest,
  BeatReport,
  JobReport,
  PointsReport,
  Report,
  SharesReport,
} from "../../../src/live/wire/messages.ts";
import { WHOLE_SHARE } from "../../../src/model/rank-shares.ts";
import { SimulatedFleet } from "./simulated-fleet.ts";
import { simulatedNode } from "./simulated-node.ts";
import { COLLECTIVE, SENDING, stageOperators } from "../../../src/live/fleet/stage-operators.ts";

const SPEC = completeSpec({
  gpus: 32,
  tp: 2,
  pp: 4,
  microBatches: 3,
  layersPerStage: 2,
  gpusPerMachine: 8,
  iterations: Number.MAX_SAFE_INTEGER,
});
const START_MS = 1_794_700_800_000;
const EVERY_MS = 500;
const JOB = { job: "sim", run: "one" };

function fleetOf(keep = 64): SimulatedFleet {
  return new SimulatedFleet({ spec: SPEC, ...JOB, everyMs: EVERY_MS, startMs: START_MS, keep });
}

/** Times of operators by iteration, rank and place, milliseconds, from the engine alone. */
function engineTimes(fleet: SimulatedFleet, iterations: number) {
  const { scale, simulation } = fleet.played;
  const { lanes } = simulation.lanes;
  const all: { issue: number[]; start: number[]; took: number[] }[][] = [];
  const ends: number[][] = [];
  for (const times of simulate(SPEC).iterations()) {
    all.push(
      Array.from({ length: SPEC.gpus }, (_, rank) => {
        const layout = stageOperators(simulation, Math.floor(rank / lanes));
        const { issueNs, startNs, endNs } = times.stages[layout.stage]!;
        const at = [...layout.op].map((op) => op * lanes + (rank % lanes));
        const ms = (ns: number): number => (ns * scale) / 1e6;
        return {
          issue: at.map((i) => ms(issueNs[i]!)),
          start: at.map((i) => ms(startNs[i]!)),
          took: at.map((i) => ms(endNs[i]! - startNs[i]!)),
        };
      }),
    );
    ends.push([...times.rankEndNs].map((ns) => (ns * scale) / 1e6));
    if (times.iteration === iterations) break;
  }
  return { all, ends };
}

function points(reports: readonly Report[]): PointsReport[] {
  return reports.filter((report) => report.kind === "points");
}

describe("a simulated machine", () => {
  const fleet = fleetOf();
  let nowMs = START_MS;
  const now = (): number => nowMs;
  const node = simulatedNode({ fleet, machine: 1, now });
  const told: Report[] = [];
  for (; nowMs < START_MS + 12_200; nowMs += 1000) told.push(...node.tick(nowMs));
  nowMs -= 1000;
  const { all, ends } = engineTimes(fleet, 30);
  const ask = async <Kind extends AgentReply["kind"]>(
    request: AgentRequest,
    kind: Kind,
  ): Promise<Extract<AgentReply, { kind: Kind }>> => {
    const reply = await node.answer(request);
    expect(reply.kind).toBe(kind);
    return reply as Extract<AgentReply, { kind: Kind }>;
  };

  test("tells of its ranks and their groups", () => {
    const [job] = node.introduce() as [JobReport];
    expect(job).toMatchObject({ ...JOB, worldSize: 32, startedMs: START_MS });
    expect(job.ranks.map(({ rank }) => rank)).toEqual([8, 9, 10, 11, 12, 13, 14, 15]);
    const rank = job.ranks[3]!;
    expect(rank).toMatchObject({ gpu: 3, nic: "node001/mlx5_3", stage: 1, leaf: "leaf3" });
    // tp 2 × dp 4 × pp 4; only the first and the last stage share the embedding.
    expect(rank.groups.map(({ size, groupRank, ranks }) => ({ size, groupRank, ranks }))).toEqual([
      { size: 32, groupRank: 11, ranks: Array.from({ length: 32 }, (_, i) => i) },
      { size: 2, groupRank: 1, ranks: [10, 11] },
      { size: 4, groupRank: 1, ranks: [9, 11, 13, 15] },
      { size: 4, groupRank: 1, ranks: [3, 11, 19, 27] },
    ]);
    expect(new Set(job.ranks.flatMap(({ groups }) => groups.map(({ key }) => key))).size).toBe(15);
  });

  test("reports each iteration of each rank once, when it has ended, with its sums", () => {
    const rows = points(told).flatMap((report) =>
      [...report.rank].map((rank, i) => ({
        rank,
        iteration: report.iteration[i]!,
        endMs: report.endMs[i]!,
        durationMs: report.durationMs[i]!,
        collectiveMs: report.collectiveMs[i]!,
        sendMs: report.sendMs[i]!,
        issueMs: report.issueMs[i]!,
      })),
    );
    for (let rank = 8; rank < 16; rank++) {
      const own = rows.filter((row) => row.rank === rank);
      const count = ends.filter((end) => START_MS + end[rank]! <= nowMs).length;
      expect(count).toBeGreaterThan(15);
      expect(own.map(({ iteration }) => iteration)).toEqual(
        Array.from({ length: count }, (_, i) => i + 1),
      );
      const { code } = fleet.stageOf(rank);
      own.forEach((row, i) => {
        const { took, issue } = all[i]![rank]!;
        const sum = (wanted: number): number =>
          took.reduce((total, ms, place) => total + (code[place] === wanted ? ms : 0), 0);
        expect(row.endMs - START_MS).toBeCloseTo(ends[i]![rank]!, 2);
        expect(row.durationMs).toBeCloseTo(ends[i]![rank]! - (ends[i - 1]?.[rank] ?? 0), 2);
        expect(row.collectiveMs).toBeCloseTo(sum(COLLECTIVE), 2);
        expect(row.sendMs).toBeCloseTo(sum(SENDING), 2);
        expect(row.issueMs).toBeCloseTo(issue.at(-1)! - issue[0]!, 2);
      });
    }
  });

  test("hands over all operators of a rank", async () => {
    const request = {
      ask: "operators",
      ...JOB,
      rank: 11,
      fromIteration: 4,
      toIteration: 6,
    } as const;
    const reply = await ask(request, "operators");
    expect([...reply.iteration]).toEqual([4, 5, 6]);
    reply.iteration.forEach((iteration, i) => {
      const { issue, start, took } = all[iteration - 1]![11]!;
      const [from, to] = [reply.from[i]!, reply.to[i]!];
      expect(to - from).toBe(took.length);
      for (let place = 0; place < took.length; place++) {
        const zero = START_MS - reply.epochMs;
        expect(reply.createdNs[from + place]! / 1e6).toBeCloseTo(zero + issue[place]!, 2);
        expect(reply.startedNs[from + place]! / 1e6).toBeCloseTo(zero + start[place]!, 2);
        const ended = reply.completedNs[from + place]! - reply.startedNs[from + place]!;
        expect(ended / 1e6).toBeCloseTo(took[place]!, 3);
      }
    });
    // Numbers of a group go on from iteration to iteration.
    const tp = [...reply.group.keys()].filter((i) => reply.group[i] === 1);
    const numbers = tp.map((i) => reply.seq[i]!);
    expect(numbers).toEqual(numbers.map((_, i) => numbers[0]! + i));
  });

  test("makes rings that ingest reads", async () => {
    const reply = await ask(
      { ask: "evidence", ...JOB, ranks: [9], records: 300, stacks: true, logBytes: 0 },
      "evidence",
    );
    expect(reply.files.map(({ name }) => name)).toEqual([
      "sim.r9.100009.native.ring",
      "sim.r9.100009.python.ring",
    ]);
    expect(reply.troubles).toEqual(["a simulated process has no stacks"]);
    const [native, python] = reply.files.map(({ name, bytes }) => readRing(name, bytes));
    expect([...native!.defects, ...python!.defects]).toEqual([]);
    const { ops } = native!.dumps![0]!;
    const last = python!.series![0]!.iteration.at(-1)!;
    const { took } = all[last - 1]![9]!;
    const tail = [...ops.durationMs].slice(-took.length);
    tail.forEach((ms, place) => expect(ms).toBeCloseTo(took[place]!, 3));
  });

  test("refuses what is not its own", async () => {
    const stretch = { ask: "operators", fromIteration: 1, toIteration: 9 } as const;
    const other = await node.answer({ ...stretch, job: "other", run: "one", rank: 9 });
    expect(other.kind).toBe("refused");
    const away = await node.answer({ ...stretch, ...JOB, rank: 3 });
    expect(away.kind).toBe("refused");
  });
});

test("iterations that are no longer held are not told of, and not handed over", async () => {
  const fleet = fleetOf(4);
  let nowMs = START_MS;
  const node = simulatedNode({ fleet, machine: 0, now: () => nowMs });
  node.tick(nowMs);
  for (; nowMs < START_MS + 5000; nowMs += 250) fleet.advance(nowMs);
  const [report] = points(node.tick(nowMs));
  const mine = [...report!.iteration].filter((_, i) => report!.rank[i] === 0);
  expect(mine.length).toBeLessThanOrEqual(4);
  expect(mine.at(-1)).toBeGreaterThan(6);
  const reply = await node.answer({
    ask: "operators",
    ...JOB,
    rank: 0,
    fromIteration: 1,
    toIteration: 9,
  });
  expect(reply.kind === "operators" && [...reply.iteration]).not.toContain(1);
});

test("a process that is killed is told of, and the silence of the others grows", () => {
  const fleet = fleetOf();
  let nowMs = START_MS;
  const nodes = [0, 1].map((machine) => simulatedNode({ fleet, machine, now: () => nowMs }));
  const told: Report[][] = [[], []];
  const play = (untilMs: number): void => {
    for (; nowMs < untilMs; nowMs += 1000)
      nodes.forEach((node, i) => told[i]!.push(...node.tick(nowMs)));
  };
  play(START_MS + 5000);
  fleet.played.board.add("process-gone:rank=10");
  play(START_MS + 50_000);
  const events = told.map((reports) =>
    reports.flatMap((report) => (report.kind === "event" ? [[report.what, report.ranks]] : [])),
  );
  expect(events).toEqual([[], [["gone", [10]]]]);
  const beat = told[1]!.findLast((report): report is BeatReport => report.kind === "beat")!;
  expect(beat.jobs[0]).toMatchObject({ alive: 7, gone: [10], stopped: [] });
  expect(beat.jobs[0]!.silentMs).toBeGreaterThan(30_000);
});

test("rings of a simulated hang name the rank", async () => {
  const fleet = fleetOf();
  let nowMs = START_MS;
  for (; nowMs < START_MS + 5000; nowMs += 500) fleet.advance(nowMs);
  fleet.played.board.add("gpu-hang:rank=10");
  for (; nowMs < START_MS + 60_000; nowMs += 500) fleet.advance(nowMs);
  const files = await Promise.all(
    [0, 1, 2, 3].map(async (machine) => {
      const node = simulatedNode({ fleet, machine, now: () => nowMs });
      const reply = await node.answer({
        ask: "evidence",
        ...JOB,
        ranks: null,
        records: 512,
        stacks: false,
        logBytes: 0,
      });
      return reply.kind === "evidence" ? reply.files : [];
    }),
  );
  const read = files.flat().map(({ name, bytes }) => readRing(name, bytes));
  const job = withIterations(buildJob(read, null));
  const env = { signal: new AbortController().signal, progress: () => undefined };
  const { findings, didNotRun } = await askMethods(job, env);
  const verdict = fuse(job, findings, didNotRun);
  expect(verdict.kind).toBe("hang");
  expect(verdict.suspects[0]).toMatchObject({ ranks: [10], machine: "node001" });
});

test("tells how long a ring's hops are on the wire, and nothing of groups that share a machine", async () => {
  const spec = completeSpec({ ...SPEC, tp: 8, pp: 1, hidden: 8192 });
  const fleet = new SimulatedFleet({ spec, ...JOB, everyMs: EVERY_MS, startMs: START_MS });
  const nowMs = START_MS + 10_000;
  const node = simulatedNode({ fleet, machine: 1, now: () => nowMs });
  fleet.advance(START_MS + 4000);
  const healthy = fleet.held.last;
  fleet.played.board.add("network-slow:link=9-17:severity=6");
  node.tick(nowMs);
  const request = { ask: "wire", ...JOB, ranks: [9, 10, 3], iterations: [healthy, healthy + 3] };
  const reply = await node.answer(request as AgentRequest);
  if (reply.kind !== "wire") throw new Error(reply.kind);
  expect([[...reply.rank], [...reply.peer]]).toEqual([
    [9, 10],
    [17, 18],
  ]);
  const [before, slow, own, still] = [...reply.ms];
  expect(slow! / before!).toBeGreaterThan(5);
  expect(still! / own!).toBeGreaterThan(0.8);
  expect(still! / own!).toBeLessThan(1.2);

  // Four members of each group on a machine.
  const shared = new SimulatedFleet({
    spec: completeSpec({ ...spec, tp: 2, dp: 16 }),
    ...JOB,
    everyMs: EVERY_MS,
    startMs: START_MS,
  });
  const other = simulatedNode({ fleet: shared, machine: 1, now: () => nowMs });
  other.tick(nowMs);
  expect(await other.answer({ ...request, iterations: [3] } as AgentRequest)).toMatchObject({
    rank: new Int32Array(0),
  });
});

test("shares are what the operators of its ranks leave of each half second, and a slow rank's are told", () => {
  const fleet = fleetOf();
  const node = simulatedNode({ fleet, machine: 0, now: () => START_MS });
  const told = (from: number, to: number): SharesReport[] =>
    Array.from({ length: to - from }, (_, k) => node.tick(START_MS + (from + k) * 1000))
      .flat()
      .filter((report) => report.kind === "shares");
  const healthy = told(1, 11);
  expect(healthy.map(({ ranks, inside }) => [ranks.length, inside.length])).toEqual(
    healthy.map(() => [8, 16]),
  );
  expect(healthy.slice(1).map(({ firstSlot }, k) => firstSlot - healthy[k]!.firstSlot)).toEqual(
    healthy.slice(1).map(() => 2),
  );
  for (const { inside, late, gpu } of healthy)
    for (const [i, share] of inside.entries())
      expect(Math.abs(share + late[i]! + gpu[i]! - WHOLE_SHARE)).toBeLessThan(3);
  const insideOf = (reports: readonly SharesReport[], rank: number): number => {
    const all = reports.flatMap(({ inside }) => [...inside].filter((_, i) => i % 8 === rank));
    return all.reduce((sum, share) => sum + share, 0) / all.length / WHOLE_SHARE;
  };
  fleet.played.board.add("gpu-slow:rank=3:severity=1.8");
  const slow = told(13, 23);
  expect(insideOf(slow, 3)).toBeLessThan(insideOf(healthy, 3));
  expect(insideOf(slow, 5)).toBeGreaterThan(insideOf(healthy, 5));
  expect(new Set(slow.flatMap(({ wires }) => wires)).size).toBeGreaterThan(1);
});
