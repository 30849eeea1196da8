/** The detector that eval/holmes/train.ts made out of simulated jobs. */
import { loadDetector, type Detector } from "./detector.ts";
import model from "./model.json" with { type: "json" };

let loaded: Detector | null = null;

export function shippedDetector(): Detector {
  loaded ??= loadDetector(model);
  return loaded;
}
