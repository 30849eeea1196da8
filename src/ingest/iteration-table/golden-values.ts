/**
 * What Megatron-LM's functional tests keep of a run's TensorBoard scalars (NVIDIA/Megatron-LM:
 * tests/functional_tests/python_test_utils/common.py, GoldenValueMetric): one object a scalar,
 *   {"iteration-time": {"start_step": 1, "end_step": 100, "step_interval": 5, "values": {"1": 6.7, "5": "nan"}}}
 * and in older versions `"values": [6.7, 0.4]`. Seconds. TensorBoard has the mean over the log interval.
 */
import type { Defect } from "../../model/reading.ts";
import type { Sink } from "../reader.ts";
import { MAX_POINTS, SeriesColumns } from "../series-columns.ts";
import { type Fields, fieldsOf, jsonOf } from "../../base/json.ts";
import { wholeFile } from "../whole-file.ts";

const NAMES = ["iteration-time", "iteration_time", "step-time", "step_time"];
const MAX_BYTES = 64 * 1024 * 1024;
const SHAPE = /^\s{0,100}\{\s{0,100}"[^"]{1,100}"\s{0,20}:\s{0,20}\{\s{0,100}"start_step"\s{0,20}:/;

export function looksLikeGoldenValues(head: string): boolean {
  return SHAPE.test(head);
}

export function goldenValues(file: string): Sink {
  return wholeFile(MAX_BYTES, (bytes) => {
    const defects: Defect[] = [];
    const points = pointsOf(bytes, (what) => defects.push({ file, what }));
    const is = { source: file, file, rank: null, basis: "reported" } as const;
    return {
      file,
      format: "iteration-table",
      rank: null,
      records: points.count,
      defects,
      series: points.tells ? [points.series(is)] : [],
    };
  });
}

function pointsOf(bytes: Buffer | null, defect: (what: string) => void): SeriesColumns {
  const points = new SeriesColumns();
  if (bytes === null) {
    defect("is larger than 64 MB; not read");
    return points;
  }
  const root = jsonOf(bytes.toString("utf8"));
  if (root === undefined) {
    defect("is damaged or cut off");
    return points;
  }
  const metric = NAMES.map((name) => fieldsOf(fieldsOf(root)?.[name])).find(
    (found) => found !== null,
  );
  const values = metric?.["values"];
  if (!metric || typeof values !== "object" || values === null) {
    defect(`has no "${NAMES[0]}"`);
    return points;
  }
  for (const [step, value] of stepsOf(values, metric)) {
    // "nan" stands for steps that were not logged.
    if (typeof value !== "number" || !(value >= 0) || !Number.isSafeInteger(step)) continue;
    if (points.count < MAX_POINTS) points.add(step, value * 1000, NaN, 0, 0);
  }
  return points;
}

function stepsOf(values: object, metric: Fields): readonly (readonly [number, unknown])[] {
  if (!Array.isArray(values)) {
    return Object.entries(values).map(([step, value]) => [Number(step), value] as const);
  }
  const number = (name: string, otherwise: number): number => {
    const value = metric[name];
    return typeof value === "number" ? value : otherwise;
  };
  const start = number("start_step", 0);
  const interval = number("step_interval", 1);
  return values.map((value: unknown, at) => [start + at * interval, value] as const);
}
