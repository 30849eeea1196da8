import { expect, it } from "vitest";
import { testIncident } from "../../../../test/support/live/incident.ts";
import { judged } from "../../../../test/support/live/judged.ts";
import { readMachineLabels } from "../../../ingest/machine-labels.ts";
import { labelsOf } from "./labels.ts";

it("exports judged incidents as labels that machines train reads", async () => {
  const at = (id: string) =>
    testIncident({ id, onsetMs: 1e6, changedMs: 1.5e6, resolvedMs: id === "3" ? null : 2e6 });
  const judgements = [
    { ...judged(true, { machines: ["a"], cause: "gpu-slow" }), incident: "1" },
    {
      ...judged(false, { machines: ["b", "c"] }, { machine: "c", cause: "storage" }),
      incident: "2",
    },
    { ...judged(false, { machines: ["d"] }), incident: "3" },
    { ...judged(true, { machines: ["e"] }), incident: "gone" },
  ];
  const found = await labelsOf(
    judgements,
    async (ids) => ids.filter((id) => id !== "gone").map(at),
    9e6,
  );
  const labels = readMachineLabels(JSON.stringify(found), "export");
  expect(labels.map(({ machine, isFaulty, cause }) => [machine, isFaulty, cause])).toEqual([
    ["a", true, "gpu-slow"],
    ["b", false, null],
    ["c", true, "storage"],
    ["d", false, null],
  ]);
  expect(labels[0]).toMatchObject({ fromS: 1000, toS: 2000 });
  // Open, and so as broken as it was when somebody asks.
  expect(labels[3]).toMatchObject({ fromS: 1000, toS: 9000 });
});
