/** Clocks that are set while a job runs, on machines and on the service: it goes on, and says so. */
import { describe, expect, it } from "vitest";
import { rehearse, viewOf } from "../support/live-rehearsal.ts";
import { few } from "../support/cases.ts";

const SMALL = { gpus: 32, tp: 2, pp: 4, gpusPerMachine: 8 };
const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000];

describe("clocks of machines", () => {
  it.each(few([-HOUR, -MINUTE, -SECOND, SECOND, MINUTE, HOUR], 3))(
    "set by %i ms in the middle of a job: named, no incident, and a slow GPU is found",
    async (offMs) => {
      const rehearsal = await rehearse(SMALL);
      await rehearsal.run(60);
      rehearsal.clocks.set(1, offMs);
      await rehearsal.run(40);
      const [job] = viewOf(rehearsal).jobs();
      const isNamed = job!.lacks.some((line) => /clocks are off.*agent1/.test(line));
      expect([isNamed, job!.health]).toEqual([Math.abs(offMs) > SECOND, "healthy"]);
      expect(rehearsal.told).toEqual([]);
      rehearsal.fleet.played.board.add("gpu-slow:rank=9:severity=3");
      const found = (): boolean => rehearsal.told.some(({ verdict }) => verdict !== null);
      expect(await rehearsal.run(40, found)).toBe(true);
      const incident = rehearsal.told.find(({ verdict }) => verdict !== null)!;
      expect(incident.ranks).toEqual([9]);
      expect(Math.abs(incident.onsetMs - rehearsal.nowMs())).toBeLessThan(MINUTE);
    },
  );
});
