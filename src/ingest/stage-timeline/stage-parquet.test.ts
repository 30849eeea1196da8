import { expect, test } from "vitest";
import { isStageTable, readStageTable } from "./stage-parquet.ts";

/** Rows of one group, as a Parquet file would give them. */
function table(rows: readonly Readonly<Record<string, number | string>>[]) {
  const names = Object.keys(rows[0]!);
  return {
    columns: names.map((name) => ({ name, isTime: false, isLocal: false })),
    groups: [rows.length],
    values: (_: number, name: string): unknown[] => rows.map((row) => row[name]),
    numbers: (_: number, name: string) => Float64Array.from(rows, (row) => Number(row[name])),
  };
}

const row = (rank: number, optype: string, start_ts: number, end: number) => ({
  dp_rank: 0,
  stage: rank,
  rank,
  step: 7,
  optype,
  start_ts,
  duration: end - start_ts,
  seq_id: 0,
  mc: -1,
  mb_id: -1,
  gmc: -1,
});

test("a communication begins when its last partner has called it", () => {
  // Rank 1 waits from the beginning for what rank 0 sends at 1.0 s.
  const rows = [
    row(0, "forward-compute", 0, 1),
    row(0, "forward-send", 1, 1.25),
    row(1, "forward-recv", 0, 1.25),
    row(1, "forward-compute", 1.25, 2),
  ];
  const given = table(rows);
  expect(isStageTable(given.columns.map(({ name }) => name))).toBe(true);
  const { stageOperations, records, defects } = readStageTable("t.parquet", given);
  const [operations] = stageOperations!;
  expect({ records, defects }).toEqual({ records: 4, defects: [] });
  expect([...operations!.startMs]).toEqual([0, 1000, 1000, 1250]);
  expect([...operations!.durationMs]).toEqual([1000, 250, 250, 750]);
  expect([...operations!.rank]).toEqual([0, 0, 1, 1]);
});

test("kinds that nobody knows are left out and counted, other tables are no such trace", () => {
  const rows = [row(0, "forward-compute", 0, 1), row(0, "juggling", 1, 2)];
  const { stageOperations, defects } = readStageTable("t.parquet", table(rows));
  expect(stageOperations![0]!.step).toHaveLength(1);
  expect(defects[0]!.what).toBe("1 operations of unknown kinds");
  expect(isStageTable(["time", "machine", "value"])).toBe(false);
});
