/** A made-up verdict that says how it came about, with somebody who disagrees; for tests and for looking. */
import type { Reasoning } from "../../../src/model/reasoning.ts";
import { type Sample, slowGpu, type Texts } from "./picture.ts";

export function reasonedSlowGpu(text: Texts = (plain) => plain): Sample {
  const sample = slowGpu(text);
  const [first, second, third] = sample.verdict.findings;
  const reasoning: Reasoning = {
    decidedBy: [
      { finding: "f2", times: 41.7 },
      { finding: "f1", times: 6.04 },
      { finding: "gone", times: 2 },
    ],
    conflicts: [
      {
        who: text("node005"),
        ranks: [40, 41],
        machine: text("node005"),
        cause: "network-slow",
        probability: 0.03,
        findings: ["f3", "lost"],
        why: text("it got slow four minutes after the iterations did"),
      },
    ],
    wouldChange: [
      text("A matrix multiplication on rank 17 as quick as its peers' would clear it."),
      text("dmesg | grep -i xid on node005 that shows an error would point there."),
    ],
    prior: { share: 0.3, says: text("30 % of slow-downs are of a GPU") },
  };
  const verdict = {
    ...sample.verdict,
    suspects: sample.verdict.suspects.map((suspect, i) =>
      i === 0
        ? { ...suspect, why: `${first!.says}; its CPU issues as before; and ${second!.says}` }
        : suspect,
    ),
    findings: [
      { ...first!, method: "slow/judge" as const },
      second!,
      { ...third!, method: "validation/tests" as const },
      {
        ...third!,
        id: "f4",
        method: "iterations/slow-down" as const,
        says: text("iterations take 1.9 times as long"),
        weight: 0.99,
      },
      {
        ...third!,
        id: "f5",
        method: "logs/library" as const,
        says: text("the logs say nothing"),
        weight: 0.2,
      },
    ],
    reasoning,
  };
  return { ...sample, verdict, incident: { ...sample.incident, verdict } };
}
