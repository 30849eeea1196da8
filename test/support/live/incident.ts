/** Incidents for tests. */
import type { Incident } from "../../../src/model/incident.ts";
import type { Suspect, Verdict } from "../../../src/model/verdict.ts";

export function testVerdict(
  change: Partial<Verdict> = {},
  suspect: Partial<Suspect> = {},
): Verdict {
  return {
    schema: "faultline.verdict/1",
    kind: "hang",
    summary: "rank 5 on node003 has a GPU that stopped working",
    confidence: 0.93,
    when: { iteration: 120, from: null, to: null },
    suspects: [
      {
        type: "gpu",
        ranks: [5],
        machine: "node003",
        link: null,
        name: null,
        cause: "gpu-hang",
        score: 0.93,
        why: "it started operator 7 and never ended it",
        evidence: ["f1"],
        ...suspect,
      },
    ],
    victims: [0, 1, 2, 3, 4, 6, 7],
    owner: "operations",
    actions: [
      { do: "check-gpu", target: "node003", why: "nvidia-smi -q" },
      { do: "replace-machine", target: "node003", why: "take the machine out" },
    ],
    mitigation: null,
    findings: [],
    inputs: [],
    missing: [],
    wouldHelp: [],
    ...change,
  };
}

export function testIncident(change: Partial<Incident> = {}): Incident {
  return {
    id: "llama.r1.hang.i120",
    job: "llama",
    run: "r1",
    revision: 2,
    state: "confirmed",
    kind: "hang",
    summary: "rank 5 on node003 has a GPU that stopped working",
    onsetMs: 1_700_000_000_000,
    openedMs: 1_700_000_005_000,
    changedMs: 1_700_000_006_000,
    resolvedMs: null,
    fromIteration: 120,
    relapses: 0,
    verdict: testVerdict(),
    machines: ["node003"],
    ranks: [5],
    wastedGpuMs: 0,
    actions: [],
    ...change,
  };
}
