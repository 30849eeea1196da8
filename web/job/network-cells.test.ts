import { expect, it } from "vitest";
import { testIncident, testVerdict } from "../../test/support/live/incident.ts";
import { networkCells } from "./network-cells.ts";

const tableOf = (machines: number) => ({
  machine: Array.from({ length: 8 * machines }, (_, rank) => `node${100 + (rank >> 3)}`),
  rowOf: new Map(Array.from({ length: 8 * machines }, (_, rank) => [rank, rank])),
});
const slow = (suspect: Parameters<typeof testVerdict>[1]) =>
  testIncident({ verdict: testVerdict({}, { machine: null, cause: "network-slow", ...suspect }) });

it("a slow link is where the rows and columns of its machines meet", () => {
  const cells = networkCells(tableOf(4), [slow({ type: "link", ranks: [9, 25] })])!;
  expect(cells).toMatchObject({ places: 4, links: [{ from: 1, to: 3 }], ends: [] });
  expect(cells.links[0]!.says).toBe("node101 – node103");
});

it("a slow NIC marks its machine; GPUs mark nothing", () => {
  const nic = slow({ type: "nic", ranks: [17], name: "node102/mlx5_1" });
  expect(networkCells(tableOf(4), [nic])).toMatchObject({
    links: [],
    ends: [{ at: 2, says: "node102/mlx5_1" }],
  });
  expect(networkCells(tableOf(4), [slow({ type: "gpu", cause: "gpu-slow" })])).toBeNull();
  expect(networkCells(tableOf(1), [nic])).toBeNull();
});

it("a thousand machines share 48 places at most", () => {
  const cells = networkCells(tableOf(1000), [slow({ type: "link", ranks: [0, 7999] })])!;
  expect(cells.places).toBeLessThanOrEqual(48);
  expect(cells.links).toMatchObject([{ from: 0, to: cells.places - 1 }]);
  expect(cells.names[0]).toBe("node100 – node120");
});
