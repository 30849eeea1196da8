import fc from "fast-check";
import { expect, test } from "vitest";
import { simulate } from "../../cluster/engine.ts";
import { COMPUTE, RECV, SEND } from "../../cluster/program.ts";
import { jobs, slowFault } from "../../../../test/support/simulate/jobs.ts";
import { workNs } from "./work-ns.ts";

test("is what the engine added between the moment the GPU was free and the operator's start", () => {
  const cases = fc.record({ spec: jobs, choice: fc.nat(8), place: fc.nat(1000) });
  fc.assert(
    fc.property(cases, ({ spec, choice, place }) => {
      const simulation = simulate({ ...spec, faults: [slowFault(spec, choice, place)] });
      const { lanes } = simulation.lanes;
      const rank = place % spec.gpus;
      const stage = Math.floor(rank / lanes);
      const { count, kind, async, role } = simulation.programs[stage]!;
      for (const times of simulation.iterations()) {
        const { issueNs, startNs, endNs } = times.stages[stage]!;
        let gpu = 0;
        for (let op = 0; op < count; op++) {
          const at = op * lanes + (rank % lanes);
          const ready = Math.max(gpu, issueNs[at]!) + workNs(simulation, times, rank, op);
          // Others may wait for gradients on top.
          const isPlain = kind[op] === SEND || kind[op] === RECV || kind[op] === COMPUTE;
          if (isPlain || (async[op] === 0 && role[op]! < 4))
            expect(Math.abs(ready - startNs[at]!)).toBeLessThan(1e-3);
          else expect(ready).toBeLessThan(startNs[at]! + 1e-3);
          gpu = async[op] === 0 ? endNs[at]! : ready;
        }
      }
    }),
    { seed: 12, numRuns: 40 },
  );
});
