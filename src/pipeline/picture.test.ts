import { describe, expect, it } from "vitest";
import { quietEnv } from "../../test/support/in-memory.ts";
import type { LivePoints } from "../model/live-points.ts";
import type { IncidentPicture } from "../model/picture.ts";
import type { RankOperators } from "../model/rank-operators.ts";
import { pictureJson, pictureOfJob, pictureOfSlowDown } from "./picture.ts";
import { slowJob } from "../../test/support/slow-job.ts";

const FAULT = "gpu-slow:rank=13:from=12:severity=2.5";

describe("the picture of a job", () => {
  it("tells the story and what it costs, as plain JSON", async () => {
    const { job, verdict } = await slowJob(FAULT);
    const picture = await pictureOfJob(job, verdict, quietEnv);
    expect(picture.lacks).toEqual([]);
    expect(picture.story!.hops.at(-1)!.to).toBe(13);
    expect(picture.whatIf!.bars).toHaveLength(3);
    const read = JSON.parse(pictureJson(picture)) as IncidentPicture;
    expect(read.story!.ends).toBe(picture.story!.ends);
    for (const number of pictureJson(picture).match(/\d+\.\d+/g) ?? [])
      expect(number.split(".")[1]!.length).toBeLessThanOrEqual(3);
  });

  it("says what could not be drawn instead of throwing", async () => {
    const { job, verdict } = await slowJob(FAULT);
    const fetch = (): never => {
      throw new Error("the disk is gone");
    };
    const broken = { ...job, rankOperators: { ...job.rankOperators, fetch } };
    const picture = await pictureOfJob(broken, verdict, quietEnv);
    expect(picture.story).toBeNull();
    expect(picture.lacks).toEqual(["the story could not be drawn: the disk is gone"]);
  });

  it("keeps a timeline's columns as lists", () => {
    const column = Float32Array.of(0.1, 1 / 3);
    const picture = { timeline: { lanes: [{ communication: column }] } };
    const text = pictureJson(picture as unknown as IncidentPicture);
    expect(text).toBe('{"timeline":{"lanes":[{"communication":[0.1,0.333]}]}}');
  });
});

describe("the picture of a running job", () => {
  it("is told from operators that agents hand over, and says so where none answers", async () => {
    const { job, verdict } = await slowJob(FAULT);
    const { ranks } = job.rankOperators;
    const all = ranks.map((rank) => job.rankOperators.fetch(rank)!);
    const iterations = all[0]!.iteration.slice(3);
    const points = pointsOf(all, iterations);
    const slow = { isSlow: (n: number) => n >= 12, from: 12, until: null, isLasting: true };
    const given = { job, verdict, points, slow, reachable: ranks };
    const told = await pictureOfSlowDown({
      ...given,
      operatorsOf: (rank) => Promise.resolve(job.rankOperators.fetch(rank)),
    });
    expect(told.story!.hops.at(-1)!.to).toBe(13);
    expect(told.whatIf!.bars.map(({ kind }) => kind)).toEqual(["now", "before", "without"]);
    const silent = await pictureOfSlowDown({ ...given, operatorsOf: () => Promise.resolve(null) });
    expect(silent.story).toBeNull();
    expect(silent.lacks.length).toBeGreaterThan(0);
    const failing = await pictureOfSlowDown({
      ...given,
      operatorsOf: () => Promise.reject(new Error("no agent")),
    });
    expect(failing.lacks).toEqual(["the story could not be drawn: no agent"]);
  });
});

function pointsOf(all: readonly RankOperators[], iterations: Float64Array): LivePoints {
  const size = iterations.length * all.length;
  const [durationMs, collectiveMs, zeros] = [
    new Float32Array(size),
    new Float32Array(size),
    new Float32Array(size),
  ];
  for (const [i, number] of iterations.entries())
    for (const [k, { iteration, from, to, ops, durationMs: took }] of all.entries()) {
      const place = iteration.indexOf(number);
      durationMs[i * all.length + k] = took[place]!;
      for (let op = from[place]!; op < to[place]!; op++)
        collectiveMs[i * all.length + k]! += ops.durationMs[op]!;
    }
  const ranks = all.map(({ rank }) => rank);
  const sides = { sendMs: zeros, recvMs: zeros, issueMs: zeros };
  return { iterations, ranks, durationMs, collectiveMs, ...sides };
}
