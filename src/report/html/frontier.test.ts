import { expect, test } from "vitest";
import { frontierTable } from "./frontier.ts";
import { syntheticHang, syntheticWaits, type Shape } from "../../../test/support/report/job.ts";

const SHAPE: Shape = { tp: 2, dp: 4, pp: 2, culprit: 5, moreRoles: 1, silent: [7] };

test("the suspect comes first, then those who wait for it, then those who wait for them", () => {
  const { job } = syntheticHang(SHAPE);
  const { rows, leftOutRows } = frontierTable(job, new Set([5]), syntheticWaits(SHAPE), 8);
  expect(rows.map(({ rank }) => rank)).toEqual([5, 1, 3, 4, 7, 13, 0, 2]);
  expect(leftOutRows).toBe(8);
  expect(rows[0]!.isSuspect).toBe(true);
});

test("a rank without a dump has no cells", () => {
  const { job } = syntheticHang(SHAPE);
  const { rows } = frontierTable(job, new Set([5]), [], 256);
  expect(rows.filter(({ cells }) => cells === null).map(({ rank }) => rank)).toEqual([7]);
});

test("what lags behind its own group is marked, but not between the stages of a pipeline", () => {
  const { job } = syntheticHang(SHAPE);
  const { rows, columns } = frontierTable(job, new Set([5]), [], 256);
  const lagging = rows.flatMap(({ rank, cells }) =>
    (cells ?? []).flatMap((cell, i) =>
      cell?.counters.some(({ lag }) => lag > 0) ? [`${rank} ${columns[i]!.role}`] : [],
    ),
  );
  expect(lagging).toEqual([
    "5 TENSOR_PARALLEL",
    "5 DATA_PARALLEL",
    "5 EXPERT_TENSOR_AND_MODEL_PARALLEL_A",
  ]);
  expect(columns.at(-1)).toEqual({ role: "PIPELINE_PARALLEL", isMixed: true, hasLag: false });
  const [enqueued, started, completed] = rows[0]!.cells![0]!.counters;
  expect(enqueued).toEqual({ value: 42_805, lag: 1 });
  expect(started).toEqual({ value: -1, lag: 0 });
  expect(completed).toEqual({ value: 42_805, lag: 0 });
});

test("of several groups of a role the one that lags most is shown", () => {
  const { job } = syntheticHang({ ...SHAPE, moreRoles: 0 });
  const groups = job.groups.map((group) => ({
    ...group,
    role: "ANY",
    desc: "ANY",
    carriesP2p: false,
  }));
  const { rows } = frontierTable({ ...job, groups }, new Set([5]), [], 256);
  expect(rows[0]!.cells).toHaveLength(1);
  expect(rows[0]!.cells![0]).toMatchObject({ more: 2 });
  expect(rows[0]!.cells![0]!.counters[0]!.lag).toBe(1);
});
