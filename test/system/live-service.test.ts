/** The service against a simulated fleet, agents' answers and all, on a clock of its own. */
import { describe, expect, it, vi } from "vitest";
import { demoSpec } from "../../src/cli/demo-play.ts";
import type { JobView, LiveEvent } from "../../src/live/service/view.ts";
import { ASKS, type PointsReport } from "../../src/live/wire/messages.ts";
import type { Incident } from "../../src/model/incident.ts";
import { type Rehearsal, rehearse, START_MS, viewOf } from "../support/live-rehearsal.ts";
import { few, longTest } from "../support/cases.ts";

const PATIENT = { timeout: 60_000 };
const SMALL = { gpus: 32, tp: 4, pp: 2, seed: 7 };

function pointsOf(rank: number, iteration: number, endMs: number): PointsReport {
  const one = (value: number): Float32Array => Float32Array.of(value);
  return {
    kind: "points",
    job: "sim",
    run: "run-1",
    rank: Uint32Array.of(rank),
    iteration: Float64Array.of(iteration),
    endMs: Float64Array.of(endMs),
    durationMs: one(1000),
    collectiveMs: one(100),
    sendMs: one(0),
    recvMs: one(0),
    issueMs: one(100),
  };
}

describe("the live service", () => {
  it("tells nobody of a healthy job, and knows its level", async () => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(120);
    expect(rehearsal.told).toEqual([]);
    const [job] = viewOf(rehearsal).jobs();
    expect(job).toMatchObject({ job: "sim", worldSize: 32, ranks: 32, health: "healthy" });
    expect(job!.baselineMs).toBeGreaterThan(900);
  });

  it("has the service that watches a job answer for its micro-batches, whichever was asked", async () => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(5);
    const { service } = rehearsal;
    const questions: string[] = [];
    let answer = "";
    const askWatcher = (job: string, text: string): Promise<string> => {
      questions.push(`${job} ${text}`);
      return answer === "" ? Promise.reject(new Error("no responders")) : Promise.resolve(answer);
    };
    service.bus = { ...service.bus!, askWatcher };
    const query = "iteration=3&run=r&replicas=4&total=16";
    const ask = (job: string): Promise<unknown> =>
      viewOf(rehearsal).askShares(job, { ask: "plan", query });
    expect(await ask("sim")).toMatchObject({ counts: [4, 4, 4, 4] });
    expect(questions).toEqual([]);
    await expect(ask("other")).rejects.toMatchObject({ status: 503 });
    answer = service.handlers.asked("sim", JSON.stringify({ ask: "plan", query }));
    expect(await ask("other")).toMatchObject({ iteration: 3, counts: [4, 4, 4, 4] });
    answer = service.handlers.asked("sim", JSON.stringify({ ask: "plan", query: "iteration=x" }));
    await expect(ask("other")).rejects.toMatchObject({ status: 400 });
    expect(questions[0]).toBe(`other ${JSON.stringify({ ask: "plan", query })}`);
  });

  describe("of a slow link in a ring, which operators do not tell from its neighbours", () => {
    const FAULT = "network-slow:link=22-26:severity=12";
    const until = async (rehearsal: Rehearsal, seconds: number): Promise<Incident> => {
      await rehearsal.run(40);
      rehearsal.fleet.played.board.add(FAULT);
      await rehearsal.run(seconds, () => rehearsal.told.some(({ validation }) => validation));
      return rehearsal.told.at(-1)!;
    };

    it("has the group and some peers test themselves once, and names it", async () => {
      const rehearsal = await rehearse(SMALL);
      const incident = await until(rehearsal, 60);
      expect(incident.verdict!.suspects).toMatchObject([{ type: "link", ranks: [22, 26] }]);
      const { validation } = incident;
      expect(validation!.isNamed).toBe(true);
      expect(validation!.ranks.length).toBeLessThan(32);
      expect(validation!.costGpuMs).toBeCloseTo(32 * validation!.tookMs!, 3);
      const id = incident.id;
      await rehearsal.run(60);
      expect(rehearsal.service.figures.validations).toBe(1);
      const last = rehearsal.told.findLast((one) => one.id === id)!;
      expect(last.verdict!.suspects).toMatchObject([{ type: "link", ranks: [22, 26] }]);
    });

    const UNTESTED = [
      ["switched off", { validation: null }, ASKS],
      ["of agents that are older than the request", {}, null],
    ] as const;
    it.each(few(UNTESTED, 1))(
      "names the whole group where tests are %s",
      async (_, options, asks) => {
        const incident = await until(await rehearse(SMALL, options, asks), 25);
        expect(incident.verdict!.suspects[0]!.ranks).toEqual([18, 22, 26, 30]);
        expect(incident.validation?.isNamed ?? false).toBe(false);
      },
    );
  });

  it("opens an incident for a GPU that is slow now and then, and sees its end", async () => {
    const rehearsal = await rehearse({ ...SMALL, gpus: 64, layersPerStage: 4, microBatches: 8 });
    await rehearsal.run(60);
    rehearsal.fleet.played.board.add("gpu-slow:rank=17:severity=4:shape=fluctuation");
    await rehearsal.run(40, () => rehearsal.told.some((one) => one.intermittent));
    const { verdict, intermittent, summary } = rehearsal.told.at(-1)!;
    expect(new Set(rehearsal.told.map(({ id }) => id)).size).toBe(1);
    expect(verdict!.suspects).toMatchObject([{ ranks: [17], cause: "gpu-slow" }]);
    expect(intermittent!.slow).toBeGreaterThanOrEqual(3);
    expect(summary).toMatch(/: slow in \d+ of the last \d+ iterations, \+\d+ % each/);
    rehearsal.fleet.played.board.clear();
    await rehearsal.run(90, () => rehearsal.told.at(-1)!.state === "resolved");
    expect(rehearsal.told.at(-1)!.state).toBe("resolved");
  });

  it("names a link of a gradient ring that is slow now and then by what is on the wire, without tests", async () => {
    const cluster = { gpus: 32, tp: 8, pp: 1, layersPerStage: 2, microBatches: 4, seed: 4 };
    const rehearsal = await rehearse({ ...cluster, hidden: 8192, sequence: 8192 });
    await rehearsal.run(60);
    rehearsal.fleet.played.board.add("network-slow:link=11-19:severity=12:shape=fluctuation");
    await rehearsal.run(40, () => rehearsal.told.some((one) => one.intermittent));
    const { verdict, intermittent } = rehearsal.told.at(-1)!;
    expect(verdict!.suspects[0]).toMatchObject({
      type: "link",
      ranks: [11, 19],
      cause: "network-slow",
    });
    expect(verdict!.summary).toMatch(/rank 11 on node001 and rank 19 on node002/);
    expect(intermittent!.slow).toBeGreaterThanOrEqual(2);
    await rehearsal.run(20);
    expect(rehearsal.service.figures.validations).toBe(0);
  });

  it("names a NIC of a fully sharded job that is slow now and then, once its rails are tested", async () => {
    const sharded = {
      gpus: 24,
      tp: 1,
      pp: 1,
      fullyShard: true,
      microBatches: 1,
      layersPerStage: 4,
    };
    const rehearsal = await rehearse({ ...sharded, hidden: 8192, sequence: 8192, seed: 4 });
    await rehearsal.run(60);
    expect(rehearsal.told).toEqual([]);
    rehearsal.fleet.played.board.add("network-slow:rank=13:severity=8:shape=fluctuation");
    await rehearsal.run(120, () => rehearsal.told.at(-1)?.validation?.isNamed === true);
    expect(rehearsal.told.at(-1)!.verdict!.suspects).toMatchObject([
      { type: "nic", ranks: [13], cause: "network-slow" },
    ]);
  });

  it.each([
    ["gpu-slow:rank=17:severity=4", [17], "gpu-slow"],
    ["cpu-stall:rank=9:severity=3", [9], "cpu-stall"],
    // Nothing else goes over its NIC than over the link.
    ["network-slow:rank=12:severity=12", [12, 28], "network-slow"],
  ])("names who is at fault: %s", async (fault, ranks, cause) => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(40);
    rehearsal.fleet.played.board.add(fault);
    const found = await rehearsal.run(40, () =>
      rehearsal.told.some(({ state }) => state === "confirmed"),
    );
    expect(found).toBe(true);
    const incident = rehearsal.told.at(-1)!;
    const { suspects } = incident.verdict!;
    expect(suspects.map((one) => one.cause)).toContain(cause);
    for (const suspect of suspects) expect(suspect.ranks).toEqual(ranks);
    expect(incident.fromIteration).toBeGreaterThan(35);
    rehearsal.fleet.played.board.clear();
    expect(await rehearsal.run(40, () => rehearsal.told.at(-1)!.state === "resolved")).toBe(true);
    expect(new Set(rehearsal.told.map(({ id }) => id)).size).toBe(1);
    await vi.waitFor(async () => {
      const stored = await rehearsal.history.incidents({});
      expect(stored.map(({ state }) => state)).toEqual(["resolved"]);
    }, PATIENT);
  });

  // The first costs more than the second, or hides it: in all iterations of the second the first is slow as well.
  const PAIRS: [string, number[], string, number[]][] = [
    ["gpu-slow:rank=36:severity=3", [36], "network-slow:rank=23:severity=10", [23]],
    ["dataloader:rank=4:severity=1.6", [4], "gpu-slow:rank=37:severity=3", [37]],
    ["gpu-slow:rank=40:severity=3", [40], "gpu-slow:rank=9:severity=3", [9]],
    // Hidden altogether: an iteration takes as long with both as with the first.
    ["dataloader:rank=11:severity=1.6", [11], "gpu-slow:rank=23:severity=3", [23]],
  ];
  it.each(few(PAIRS, 1))(
    "names both of two faults: %s, %j, then %s, %j",
    async (first, one, second, two) => {
      const rehearsal = await rehearse(demoSpec(), { validation: null });
      const accused = (): (readonly number[])[] =>
        [...rehearsal.service.jobs.values()][0]!.open.flatMap(
          ({ verdict }) => verdict?.suspects.map(({ ranks }) => ranks) ?? [],
        );
      await rehearsal.run(60);
      rehearsal.fleet.played.board.add(first);
      await rehearsal.run(20);
      expect(accused()).toEqual([one]);
      rehearsal.fleet.played.board.add(second);
      await rehearsal.run(60, () => accused().length > 1);
      // Of the second nothing goes over a wire that agents time: its group is named.
      const [last, before] = accused() as [readonly number[], readonly number[]];
      expect([before, last.filter((rank) => two.includes(rank))]).toEqual([one, two]);
    },
  );

  longTest("accuses nobody else of faults that come and go, alone and two at a time", async () => {
    const rehearsal = await rehearse(demoSpec(), { validation: null }, ASKS, { everyMs: 500 });
    const { board } = rehearsal.fleet.played;
    await rehearsal.run(30);
    for (const faults of [
      ["gpu-slow:rank=5:severity=3", "dataloader:rank=9:severity=1.6"],
      ["network-slow:link=node000-node002:severity=100", "gpu-slow:rank=50:severity=3"],
    ]) {
      for (const fault of faults) {
        board.add(fault);
        await rehearsal.run(20);
      }
      board.clear();
      await rehearsal.run(20);
    }
    const accused = rehearsal.told.flatMap(({ verdict }) =>
      (verdict?.suspects ?? []).map(({ cause, ranks }) =>
        cause === "network-slow" ? cause : `${cause} ${ranks.join()}`,
      ),
    );
    const faults = ["gpu-slow 5", "dataloader 9", "network-slow", "gpu-slow 50"];
    expect([...new Set(accused)]).toEqual(faults);
    expect(new Set(rehearsal.told.map(({ id }) => id)).size).toBe(4);
  });

  it("has one incident of a link between two machines, and names that", async () => {
    const rehearsal = await rehearse(demoSpec(), { validation: null });
    await rehearsal.run(60);
    rehearsal.fleet.played.board.add("network-slow:link=node001-node003:severity=100");
    await rehearsal.run(60);
    expect(new Set(rehearsal.told.map(({ id }) => id)).size).toBe(1);
    expect(rehearsal.told.at(-1)!.verdict!.suspects).toMatchObject([
      { type: "link", link: ["node001", "node003"], cause: "network-slow" },
    ]);
  });

  it("finds one GPU among 512, and asks for no operators", async () => {
    const spec = { gpus: 512, tp: 8, pp: 2, microBatches: 8, layersPerStage: 4, seed: 3 };
    const rehearsal = await rehearse(spec);
    await rehearsal.run(35);
    rehearsal.fleet.played.board.add("gpu-slow:rank=300:severity=4");
    await rehearsal.run(40, () => rehearsal.told.some(({ state }) => state === "confirmed"));
    expect(rehearsal.told.at(-1)?.verdict?.suspects[0]).toMatchObject({
      ranks: [300],
      cause: "gpu-slow",
    });
    expect(rehearsal.service.figures.fetchedBytes).toBe(0);
  });

  it("calls what comes back the same incident", async () => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(40);
    for (let time = 0; time < 2; time++) {
      rehearsal.fleet.played.board.add("gpu-slow:rank=17:severity=4");
      await rehearsal.run(
        40,
        () =>
          (rehearsal.told.at(-1)?.verdict ?? null) !== null &&
          rehearsal.told.at(-1)!.state !== "resolved",
      );
      rehearsal.fleet.played.board.clear();
      await rehearsal.run(60, () => rehearsal.told.at(-1)!.state === "resolved");
      await rehearsal.run(40);
    }
    expect(new Set(rehearsal.told.map(({ id }) => id)).size).toBe(1);
    const states = rehearsal.told
      .map(({ state }) => state)
      .filter((state, i, all) => state !== all[i - 1]);
    expect(states).toEqual(["suspected", "confirmed", "resolved", "relapsed", "resolved"]);
  });

  it("knows its jobs, incidents and baselines after kill -9, and sees the end", async () => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(40);
    rehearsal.fleet.played.board.add("gpu-slow:rank=17:severity=4");
    await rehearsal.run(40, () => rehearsal.told.some(({ state }) => state === "confirmed"));
    const before = viewOf(rehearsal).jobs()[0]!;
    await rehearsal.restart();
    const after = viewOf(rehearsal).jobs()[0]!;
    expect(after).toMatchObject({
      job: "sim",
      incident: before.incident,
      baselineMs: before.baselineMs,
    });
    await rehearsal.run(20);
    rehearsal.fleet.played.board.clear();
    expect(await rehearsal.run(40, () => rehearsal.told.at(-1)!.state === "resolved")).toBe(true);
    await vi.waitFor(async () => {
      const all = await rehearsal.history.incidents({});
      expect(all.map(({ id, state }) => [id, state])).toEqual([[before.incident, "resolved"]]);
    }, PATIENT);
    const revisions = await rehearsal.history.incidentHistory(before.incident!);
    expect(revisions.map(({ revision }) => revision)).toEqual(
      Array.from({ length: revisions.length }, (_, i) => i + 1),
    );
  });

  it("does not believe an agent that tells of another's ranks", async () => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(30);
    const { service } = rehearsal;
    const level = viewOf(rehearsal).jobs()[0]!.levelMs!;
    const before = service.figures.points;
    // Rank 9 is on the second machine.
    await service.handlers.report(rehearsal.hello(0), pointsOf(9, 10_000, rehearsal.nowMs()));
    expect(service.figures.points).toBe(before);
    expect(service.figures.refusedReports).toBe(1);
    await rehearsal.run(20);
    expect(viewOf(rehearsal).jobs()[0]!.levelMs!).toBeCloseTo(level, -2);
    expect(rehearsal.told).toEqual([]);
    const [node0] = [rehearsal.hello(0)];
    await service.handlers.report(node0, {
      kind: "job",
      job: "sim",
      run: "run-1",
      startedMs: START_MS,
      worldSize: 32,
      ranks: [{ rank: 9, gpu: 1, pid: 1, nic: null, leaf: null, stage: null, groups: [] }],
    });
    expect(service.jobs.get("sim")!.run!.ranks.get(9)!.agent).toBe("agent1");
  });

  it("tells of each job about once a second while it runs, and of every iteration once", async () => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(10);
    const heard: LiveEvent[] = [];
    const stop = rehearsal.service.publisher.listen((event) => void heard.push(event));
    await rehearsal.run(30);
    const jobs = heard.flatMap((event) => (event.type === "job" ? [event.job] : []));
    expect(jobs.length).toBeGreaterThanOrEqual(25);
    expect(jobs.length).toBeLessThanOrEqual(31);
    expect(jobs.at(-1)).toEqual(viewOf(rehearsal).job("sim") satisfies JobView | null);
    const iterations = heard.flatMap((event) =>
      event.type === "iterations" ? event.rows.iteration : [],
    );
    expect(iterations.length).toBeGreaterThanOrEqual(25);
    expect(new Set(iterations).size).toBe(iterations.length);
    // Nobody tells any more: nothing changes, nothing is said.
    heard.length = 0;
    for (let i = 0; i < 20; i++) rehearsal.service.tick();
    expect(heard.filter(({ type }) => type === "job").length).toBeLessThanOrEqual(1);
    stop();
  });

  it("shows where ranks stand, who is late, and what it has cost", async () => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(40);
    const view = viewOf(rehearsal);
    const healthy = view.ranks("sim")!;
    const cells = healthy.rank.map(
      (_, k) => `${healthy.pipeline[k]} ${healthy.data[k]} ${healthy.tensor[k]}`,
    );
    expect(new Set(cells).size).toBe(32);
    // tp 4, pp 2, so dp 4.
    expect(Math.max(...(healthy.tensor as number[]))).toBe(3);
    expect(Math.max(...(healthy.pipeline as number[]))).toBe(1);
    expect(Math.max(...(healthy.data as number[]))).toBe(3);
    expect(healthy.groups.some(({ role }) => role === "TENSOR_MODEL_PARALLEL_GROUP")).toBe(true);
    expect(view.job("sim")!.wastedGpuMs).toBe(0);
    rehearsal.fleet.played.board.add("gpu-slow:rank=17:severity=4");
    await rehearsal.run(40, () => rehearsal.told.some(({ state }) => state === "confirmed"));
    const slow = view.ranks("sim")!;
    expect(slow.layout).toBe(healthy.layout);
    const latest = slow.lateMs.indexOf(Math.max(...slow.lateMs));
    expect(slow.rank[latest]).toBe(17);
    const wasted = view.job("sim")!.wastedGpuMs;
    expect(wasted).toBeGreaterThan(0);
    await rehearsal.run(5);
    expect(view.job("sim")!.wastedGpuMs).toBeGreaterThan(wasted);
    const { id } = rehearsal.told.at(-1)!;
    expect((await view.incident(id))!.wastedGpuMs).toBe(view.job("sim")!.wastedGpuMs);
    expect((await view.incidents({ open: true }))[0]!.wastedGpuMs).toBe(
      view.job("sim")!.wastedGpuMs,
    );
  });

  it("keeps what an incident is drawn from, also over a restart", async () => {
    const rehearsal = await rehearse(SMALL);
    await rehearsal.run(40);
    rehearsal.fleet.played.board.add("gpu-slow:rank=17:severity=4");
    await rehearsal.run(40, () => rehearsal.told.some(({ state }) => state === "confirmed"));
    const { id } = rehearsal.told.at(-1)!;
    const drawn = await vi.waitFor(async () => {
      const picture = await viewOf(rehearsal).picture(id);
      expect(picture).not.toBeNull();
      return picture!;
    }, PATIENT);
    expect(drawn.story!.hops.at(-1)!.to).toBe(17);
    await rehearsal.service.pictures.idle();
    await rehearsal.restart();
    expect(await viewOf(rehearsal).picture(id)).toEqual(drawn);
    expect(await viewOf(rehearsal).picture("sim.run-1.fail-slow.i1-x")).toBeNull();
    expect(await viewOf(rehearsal).report(id)).toBeNull();
  });
});
