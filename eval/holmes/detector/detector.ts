/** Which of a rank's operators took abnormally long in one iteration (Holmes §4.2.2). */
import { forestFromJson, type ForestJson } from "../../maths/forest-json.ts";
import type { Forest } from "../../maths/forest-grow.ts";
import { predictRows } from "../../maths/forest.ts";
import { featureRows, type OperatorWindow, type PlaceFeatures } from "./features.ts";

/** As stored in model.json. */
export interface DetectorJson {
  readonly cut: number;
  readonly forest: ForestJson;
}

export interface Detector {
  readonly forest: Forest;
  readonly cut: number;
}

export interface AbnormalOperators {
  /** Places in the iteration, ascending. */
  readonly places: Int32Array;
  /** Of each: the forest's probability. */
  readonly probability: Float64Array;
}

/**
 * Abnormal is what costs the iteration more than this share of its time; an operator that is shorter as a whole
 * cannot, however much longer than usual it is (§4.2.2: from 0.02 ms to 1 ms in 9 s is no cause). An iteration
 * has at most a hundred operators above it on a stream, so nearly all the work is saved.
 */
export const LEAST_SHARE = 0.01;

export function loadDetector(json: DetectorJson): Detector {
  return { forest: forestFromJson(json.forest), cut: json.cut };
}

/** `leastShare` 0 asks the forest about every operator. */
export function detectAbnormal(
  { forest, cut }: Detector,
  window: OperatorWindow,
  fixed: PlaceFeatures,
  at: number,
  leastShare = LEAST_SHARE,
): AbnormalOperators {
  const from = at * window.places;
  const least = leastShare * window.iterationMs[at]!;
  const asked = new Int32Array(window.places);
  let count = 0;
  for (let place = 0; place < window.places; place++)
    if (window.durationMs[from + place]! >= least) asked[count++] = place;
  const places = asked.subarray(0, count);
  const probability = predictRows(forest, featureRows(window, fixed, at, places));
  const found = Array.from(places.keys()).filter((i) => probability[i]! >= cut);
  return {
    places: Int32Array.from(found, (i) => places[i]!),
    probability: Float64Array.from(found, (i) => probability[i]!),
  };
}
