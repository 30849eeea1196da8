/** What the builder of samples left out, said once a file. */
import { count } from "../../base/text.ts";
import type { Defect } from "../../model/reading.ts";
import type { BuilderCounts } from "../metrics/metric-set-builder.ts";

export function builderDefects(file: string, counts: BuilderCounts): Defect[] {
  const defects: Defect[] = [];
  if (counts.repeated > 0) {
    const what = `${count(counts.repeated, "sample")} left out: their series already has a sample of that time`;
    defects.push({ file, what });
  }
  if (counts.duplicateSeries > 0) {
    const what = `${count(counts.duplicateSeries, "series")} left out: others report the same for the same device`;
    defects.push({ file, what: what.replace("seriess", "series") });
  }
  if (counts.tooMany > 0) {
    defects.push({ file, what: `${count(counts.tooMany, "sample")} left out: too many to hold` });
  }
  return defects;
}
