/** The thread in which the service judges jobs, as it is built. */
import { afterAll, expect, it } from "vitest";
import type { Judging } from "../../src/live/service/slowdown/judge-thread.ts";
import type { SessionJudgement } from "../../src/live/service/slowdown/judge-host.ts";
import { LAYOUT, PlayedShares } from "../support/live/played-shares.ts";
import { until } from "../support/until.ts";

const place = new URL("../../dist/live/service/slowdown/judge-thread.js", import.meta.url);
const { judgeInThread } = (await import(place.href)) as {
  readonly judgeInThread: (trouble: (line: string) => void) => Judging;
};
const troubles: string[] = [];
const judging = judgeInThread((line) => void troubles.push(line));
afterAll(() => judging.close());

it("judges several jobs at once, and tells each what is said of it alone", async () => {
  const jobs = [null, 5, 2].map((slow) => {
    const said: SessionJudgement[] = [];
    const judge = judging.open((some) => void said.push(...some));
    judge.tell({ say: "layout", layout: LAYOUT });
    const shares = new PlayedShares();
    const play = (seconds: number): void => {
      for (let k = 0; k < 2 * seconds; k++) shares.next().forEach((message) => judge.tell(message));
    };
    play(40);
    if (slow !== null) shares.slow.add(slow);
    play(6);
    return { judge, said, untilMs: shares.nowMs };
  });
  await until(() => jobs.every(({ said, untilMs }) => said.at(-1)?.judgement.untilMs === untilMs));
  const named = jobs.map(({ said }) => said.at(-1)!.judgement.culprits.map(({ ranks }) => ranks));
  expect(named).toEqual([[], [[5]], [[2]]]);
  for (const { judge } of jobs) judge.close();
  expect(troubles).toEqual([]);
});
