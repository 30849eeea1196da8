/**
 * Agents that are connected and report nothing, nor answer: a tenth, half, nine tenths of them. Who is silent is named, and
 * accused of nothing; who is innocent is not accused instead.
 */
import { describe, expect, it } from "vitest";
import type { Incident } from "../../src/model/incident.ts";
import { rehearse, viewOf, type Rehearsal } from "../support/live-rehearsal.ts";
import { few } from "../support/cases.ts";

const JOB = { gpus: 80, tp: 4, pp: 2, gpusPerMachine: 8 };
const MACHINES = 10;
const CULPRIT = 37;

/** Some machines fall silent, then something breaks. */
async function drill(fault: string, silent: number, isCulprit: boolean): Promise<Rehearsal> {
  const rehearsal = await rehearse(JOB);
  await rehearsal.run(45);
  const own = Math.floor(CULPRIT / JOB.gpusPerMachine);
  const others = Array.from({ length: MACHINES }, (_, i) => i).filter((one) => one !== own);
  const chosen = isCulprit ? [own, ...others].slice(0, silent) : others.slice(0, silent);
  for (const machine of chosen) rehearsal.silent.add(machine);
  await rehearsal.run(20);
  rehearsal.fleet.played.board.add(`${fault}:rank=${CULPRIT}`);
  await rehearsal.run(60);
  return rehearsal;
}

function latest({ told }: Rehearsal): Incident[] {
  return [...new Map(told.map((one) => [one.id, one])).values()];
}

const CASES = [1, 5, 9].flatMap((silent) => [
  [silent, "heard", false] as const,
  [silent, "silent", true] as const,
]);

describe.each(["gpu-slow:severity=3", "gpu-hang"])("%s", (fault) => {
  it.each(few(CASES, 2))(
    "with %i of 10 machines silent, the culprit %s",
    async (silent, _, isCulprit) => {
      const rehearsal = await drill(fault, silent, isCulprit);
      const [job] = viewOf(rehearsal).jobs();
      const words = `${silent} of 10 machines ${silent === 1 ? "is" : "are"} not heard`;
      expect(job!.lacks.join("\n")).toContain(words);
      const incidents = latest(rehearsal);
      for (const { ranks, verdict } of incidents) {
        // Nobody but the culprit, and that one only where it is heard.
        expect(ranks.filter((rank) => isCulprit || rank !== CULPRIT)).toEqual([]);
        if (verdict) {
          expect(verdict.missing.join("\n")).toContain(words);
          expect(verdict.confidence).toBeLessThan(isCulprit ? 0.35 : 1);
        }
      }
      if (fault === "gpu-hang") expect(job!.health).toBe("hung");
      // The ranks that are heard show that it is slow, whoever causes it.
      expect(incidents).not.toEqual([]);
      if (!isCulprit) expect(incidents.some(({ ranks }) => ranks.includes(CULPRIT))).toBe(true);
    },
  );
});

it("crash: collects the evidence once agents are back that did not answer for some seconds", async () => {
  const rehearsal = await rehearse(JOB);
  await rehearsal.run(45);
  rehearsal.fleet.played.board.add(`process-gone:rank=${CULPRIT}`);
  await rehearsal.run(1.5);
  for (let machine = 0; machine < MACHINES; machine++) rehearsal.silent.add(machine);
  const isTold = (): boolean => latest(rehearsal).some(({ verdict }) => verdict !== null);
  expect(await rehearsal.run(10, isTold)).toBe(true);
  const [kept] = latest(rehearsal);
  expect(kept).toMatchObject({ kind: "crash", ranks: [CULPRIT] });
  expect(kept!.verdict!.summary).toContain("No evidence could be collected. The last iteration is");
  expect(kept!.verdict!.summary).toContain("10 of 10 machines are not heard");
  rehearsal.silent.clear();
  const isShown = (): boolean => latest(rehearsal)[0]!.verdict!.inputs.length > 0;
  expect(await rehearsal.run(10, isShown)).toBe(true);
  const all = latest(rehearsal);
  expect(all).toMatchObject([{ id: kept!.id, kind: "crash", ranks: [CULPRIT] }]);
});
