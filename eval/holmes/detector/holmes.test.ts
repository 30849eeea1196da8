import { describe, expect, it } from "vitest";
import { seeded } from "../../../src/base/random.ts";
import { predictRows } from "../../maths/forest.ts";
import { featureLevels, tuneForest } from "./auto-tune.ts";
import { detectAbnormal } from "./detector.ts";
import {
  FEATURE_COUNT,
  featureRows,
  FEATURES,
  SCALE_FEATURES,
  type OperatorWindow,
  type PlaceFeatures,
} from "./features.ts";
import model from "./model.json" with { type: "json" };
import { shippedDetector } from "./shipped.ts";
import { balance, bestCut, scoreOf, trainDetector } from "./train.ts";

/** Iterations of 1,000 ms with 40 operators of about 20 ms. */
function window(iterations = 60, places = 40): OperatorWindow {
  const random = seeded(9);
  const durationMs = Float64Array.from(
    { length: iterations * places },
    () => 20 * (1 + 0.05 * (random() - 0.5)),
  );
  const iterationMs = Float64Array.from({ length: iterations }, () => 1000 + 10 * random());
  return { places, durationMs, iterationMs };
}

function places(count = 40): PlaceFeatures {
  return {
    ranks: new Float64Array(count).fill(8),
    bytes: new Float64Array(count).fill(1 << 24),
    pattern: Uint8Array.from({ length: count }, (_, place) => place % 6),
  };
}

const feature = (name: (typeof FEATURES)[number]): number => FEATURES.indexOf(name);

describe("features", () => {
  it("are those of the window, of the iteration and of the place", () => {
    const durationMs = Float64Array.of(1, 10, 2, 10, 3, 10, 4, 10, 10, 10);
    const iterationMs = Float64Array.of(100, 100, 100, 100, 200);
    const fixed = {
      ranks: Float64Array.of(4, 8),
      bytes: Float64Array.of(7, 9),
      pattern: Uint8Array.of(5, 99),
    };
    const rows = featureRows({ places: 2, durationMs, iterationMs }, fixed, 4);
    const row = Object.fromEntries(FEATURES.map((name, f) => [name, rows[f]]));
    expect(row).toMatchObject({ duration: 10, mean: 4, q1: 2, q2: 3, q3: 4, iqr: 2, share: 0.05 });
    expect(row).toMatchObject({ iteration: 200, "iteration mean": 120, "iteration z": 2 });
    expect(row).toMatchObject({ ranks: 4, bytes: 7, recv: 1, send: 0, "iteration ratio": 2 });
    expect(row["std"]).toBeCloseTo(Math.sqrt(10));
    expect(row["z"]).toBeCloseTo(6 / Math.sqrt(10));
    const other = rows.subarray(FEATURE_COUNT);
    expect(other[feature("z")]).toBe(0);
    expect(other.subarray(14, 20).every((value) => value === 0)).toBe(true);
  });

  it("do not depend on which other places are asked for", () => {
    const whole = window();
    const all = featureRows(whole, places(), 59);
    const asked = Int32Array.of(3, 17, 39);
    const some = featureRows(whole, places(), 59, asked);
    asked.forEach((place, i) => {
      const cut = (rows: Float64Array, at: number): Float64Array =>
        rows.slice(at * FEATURE_COUNT, (at + 1) * FEATURE_COUNT);
      expect(cut(some, i)).toEqual(cut(all, place));
    });
  });

  it("pass over operators that the log lacks", () => {
    const whole = window();
    whole.durationMs[5 * 40 + 1] = NaN;
    whole.durationMs[59 * 40 + 2] = NaN;
    const rows = featureRows(whole, places(), 59);
    expect(rows.every((value) => !Number.isNaN(value))).toBe(true);
    expect(rows[2 * FEATURE_COUNT]).toBe(0);
    expect(rows[FEATURE_COUNT + 1]).toBeCloseTo(20, 0);
  });
});

describe("the shipped detector", () => {
  const detector = shippedDetector();

  it("accuses nothing where nothing happened", () => {
    expect([...detectAbnormal(detector, window(), places(), 59).places]).toEqual([]);
  });

  it("accuses the operators that made the iteration long", () => {
    const slow = window();
    for (const place of [7, 21]) slow.durationMs[59 * 40 + place] = 300;
    slow.iterationMs[59] = 1560;
    const found = detectAbnormal(detector, slow, places(), 59);
    expect([...found.places]).toEqual([7, 21]);
    expect(Math.min(...found.probability)).toBeGreaterThanOrEqual(detector.cut);
  });

  it("lets pass what grew fifty times and costs nothing (§4.2.2)", () => {
    const slow = window();
    for (let i = 0; i < 60; i++) slow.durationMs[i * 40 + 3] = i === 59 ? 1 : 0.02;
    slow.durationMs[59 * 40 + 7] = 300;
    slow.iterationMs[59] = 1280;
    expect([...detectAbnormal(detector, slow, places(), 59).places]).toEqual([7]);
  });

  it("fits in 300 kB", () => {
    expect(JSON.stringify(model).length).toBeLessThan(300_000);
  });
});

describe("tuning", () => {
  /** Two columns are enough to learn from: long operators are abnormal. */
  function learnt() {
    const random = seeded(2);
    const rows = new Float64Array(400 * FEATURE_COUNT).map(() => 50 + 10 * random());
    const labels = Uint8Array.from({ length: 400 }, (_, row) =>
      Number(rows[row * FEATURE_COUNT]! > 57),
    );
    return { features: FEATURE_COUNT, rows, labels };
  }

  it.each(["mean", "p75", "p99"] as const)("by %s undoes a shift of all times", (statistic) => {
    const data = learnt();
    const { forest } = trainDetector(data, data);
    const moved = data.rows.slice();
    for (let from = 0; from < moved.length; from += FEATURE_COUNT)
      for (const f of SCALE_FEATURES) moved[from + f]! += 8;
    const levels = (rows: Float64Array): Float64Array =>
      featureLevels(rows, FEATURE_COUNT, statistic);
    const tuned = tuneForest(forest, levels(data.rows), levels(moved), statistic);
    expect(predictRows(tuned, moved)).toEqual(predictRows(forest, data.rows));
    expect(predictRows(forest, moved)).not.toEqual(predictRows(forest, data.rows));
  });

  it("by the ratio undoes a stretch, and features without a unit keep their thresholds", () => {
    const data = learnt();
    const { forest } = trainDetector(data, data);
    const trained = featureLevels(data.rows, FEATURE_COUNT, "ratio");
    const tuned = tuneForest(
      forest,
      trained,
      trained.map((level) => 2 * level),
      "ratio",
    );
    forest.feature.forEach((asked, node) => {
      const factor = SCALE_FEATURES.includes(asked) ? 2 : 1;
      expect(tuned.threshold[node]).toBe(factor * forest.threshold[node]!);
    });
  });
});

describe("training", () => {
  it("takes every abnormal row and its multiple of normal ones, none twice", () => {
    const labels = Uint8Array.from({ length: 50 }, (_, row) => Number(row % 10 === 0));
    const rows = Float64Array.from({ length: 50 }, (_, row) => row);
    const picked = balance({ features: 1, rows, labels }, 3, 1);
    expect(picked.labels.filter((label) => label === 1).length).toBe(5);
    expect(new Set(picked.rows).size).toBe(20);
  });

  it("cuts where F1 is best", () => {
    const scores = Float64Array.of(0.9, 0.8, 0.7, 0.6, 0.1);
    const labels = Uint8Array.of(1, 1, 0, 1, 0);
    const cut = bestCut(scores, labels);
    expect(cut).toBeCloseTo(0.35);
    const score = scoreOf((row) => scores[row]! >= cut, labels);
    expect(score).toEqual({ precision: 0.75, recall: 1, f1: (2 * 0.75) / 1.75 });
  });
});
