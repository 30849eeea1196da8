/** Minder's trained models as data: one per metric (§4.2), and one for metrics that have none. */
import { jsonOf } from "../../../base/json.ts";
import { getOrInsert } from "../../../base/group-by.ts";
import { UserError } from "../../../base/errors.ts";
import {
  layoutOf,
  MINDER_SHAPE,
  vaeFromJson,
  type LstmVae,
  type VaeJson,
} from "../../../maths/lstm-vae.ts";
import type { Limits } from "./preprocess.ts";

export interface MetricModel {
  /** What the training data reached, in the metric's unit. */
  readonly limits: Limits;
  /** Mean square error of the reconstruction on windows that it was not trained on. */
  readonly mse: number;
  /** How many it was trained on. */
  readonly windows: number;
  readonly vae: VaeJson;
}

export interface MinderModels {
  readonly version: 1;
  readonly metrics: Readonly<Record<string, MetricModel>>;
  /** Trained on windows of all metrics. */
  readonly fallback: MetricModel;
}

export function modelOf(models: MinderModels, metric: string): MetricModel {
  return Object.hasOwn(models.metrics, metric) ? models.metrics[metric]! : models.fallback;
}

/** Parsed once for each model. */
const parsed = new WeakMap<VaeJson, LstmVae>();

export function vaeOf({ vae }: MetricModel): LstmVae {
  return getOrInsert(parsed, vae, () => vaeFromJson(vae));
}

/** A file that a retraining wrote. */
export function readModels(text: string, name: string): MinderModels {
  const hint = "Train again with the same version of Faultline.";
  const models = jsonOf(text) as Partial<MinderModels> | null | undefined;
  if (models === undefined) throw new UserError(`${name} is not JSON`, hint, 3);
  if (models?.version !== 1 || !models.metrics || !models.fallback)
    throw new UserError(`${name} holds no models of version 1`, hint, 3);
  const { version, metrics, fallback } = models;
  for (const model of [...Object.values(metrics), fallback]) {
    const { shape, parameters } = model.vae ?? {};
    const isSound =
      shape !== undefined &&
      shape.window === MINDER_SHAPE.window &&
      Array.isArray(parameters) &&
      parameters.length === layoutOf(shape).size &&
      parameters.every((value) => Number.isFinite(value));
    if (!isSound) throw new UserError(`${name} has a model that is broken`, hint, 3);
    vaeOf(model);
  }
  return { version, metrics, fallback };
}
