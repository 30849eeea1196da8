import { describe, expect, it } from "vitest";
import { quietEnv } from "../../test/support/in-memory.ts";
import { judgedRank } from "../../test/support/judged.ts";
import { buildJob } from "../ingest/build-job.ts";
import { parseJobFile } from "../ingest/job-file.ts";
import type { Finding } from "../model/finding.ts";
import type { IncidentPicture } from "../model/picture.ts";
import { fuse } from "../verdict/fuse.ts";
import { pictureJson, pictureOfJob, pictureOfSlowDown } from "./picture.ts";

const job = buildJob([], parseJobFile({ worldSize: 4 }, "job.json"));
const slow: Finding = {
  id: "f1",
  method: "slow/judge",
  says: "rank 3 is slow",
  weight: 0.9,
  at: [],
  data: judgedRank(0.9),
  accuses: [
    {
      kind: "fail-slow",
      type: "rank",
      ranks: [3],
      link: null,
      cause: "gpu-slow",
      weight: 0.9,
      why: "it is slow",
    },
  ],
  clears: [0, 1, 2],
};
const verdict = fuse(job, [slow], []);

describe("the picture of a job", () => {
  it("tells whom the slow rank was compared with, as plain JSON", async () => {
    const picture = await pictureOfJob(job, verdict, quietEnv);
    expect(picture.lacks).toEqual([]);
    expect(picture.story!.hops.map(({ kind }) => kind)).toEqual(["inside", "own"]);
    const read = JSON.parse(pictureJson(picture)) as IncidentPicture;
    expect(read.story!.ends).toBe(picture.story!.ends);
  });

  it("is of the verdict alone where the job runs", () => {
    const { story, lacks } = pictureOfSlowDown(job, verdict);
    expect(story!.hops.at(-1)!.to).toBe(3);
    expect(lacks).toEqual([]);
    const nobody = pictureOfSlowDown(job, { ...verdict, suspects: [] });
    expect(nobody).toMatchObject({ story: null, lacks: [expect.stringMatching(/^No story: /)] });
  });

  it("says what could not be drawn instead of throwing", async () => {
    const broken = { ...verdict, findings: null as never };
    const picture = await pictureOfJob(job, broken, quietEnv);
    expect(picture.story).toBeNull();
    expect(picture.lacks.join()).toMatch(/^the story could not be drawn: /);
  });

  it("keeps figures to three places, and a timeline's columns as lists", () => {
    const column = Float32Array.of(0.1, 1 / 3);
    const picture = { timeline: { lanes: [{ communication: column, ms: 1 / 7 }] } };
    const text = pictureJson(picture as unknown as IncidentPicture);
    expect(text).toBe('{"timeline":{"lanes":[{"communication":[0.1,0.333],"ms":0.143}]}}');
  });
});
