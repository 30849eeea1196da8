/** The ranks of a job as JSON, made for being asked for each second. */
import type { RankColumns } from "../view.ts";
import { jsonText } from "./json.ts";
import { JsonBytes } from "./json-bytes.ts";

/** What changes with every iteration. */
export function rankValues(columns: RankColumns): Buffer {
  return written(columns).text("}").done();
}

export function rankColumns(columns: RankColumns): Buffer {
  const { groups, rank, machine, gpu, stage, pipeline, data, tensor } = columns;
  const places = jsonText({ groups, rank, machine, gpu, stage, pipeline, data, tensor });
  return written(columns)
    .text(`,${places.slice(1)}`)
    .done();
}

function written(columns: RankColumns): JsonBytes {
  const { iteration, durationMs, ownMs, waitMs, lateMs, temperature, state } = columns;
  const bytes = new JsonBytes().text(`{"layout":${jsonText(columns.layout)}`);
  for (const [name, values] of Object.entries({
    iteration,
    durationMs,
    ownMs,
    waitMs,
    lateMs,
    temperature,
  }))
    bytes.text(`,"${name}":`).numbers(values);
  return bytes.text(`,"state":`).words(state);
}
