/** How strong a fault is, from how much it is to cost: papers report slow-downs, not factors on devices. */
import { quietIterationNs } from "../../../src/simulate/cluster/costs.ts";
import type { FaultSpec } from "../../../src/simulate/cluster/fault-spec.ts";
import type { ClusterSpec } from "../../../src/simulate/cluster/spec.ts";

export interface Costed {
  readonly fault: FaultSpec;
  /** What it costs in fact, as a share of an iteration. */
  readonly growth: number;
}

const HALVINGS = 7;
const NEAR = 0.1;

export interface Bounds {
  /** What it has to cost at least. */
  readonly least: number;
  /** How strong it can be. */
  readonly most: number;
}

/** Null where the fault costs too little in this place, however strong: it is off the critical path. */
export function costing(
  spec: ClusterSpec,
  fault: FaultSpec,
  wanted: number,
  { least, most }: Bounds,
): Costed | null {
  const healthyNs = quietIterationNs(spec, []);
  const growthAt = (severity: number): number =>
    quietIterationNs(spec, [{ ...fault, severity, from: 1, to: Infinity }]) / healthyNs - 1;
  let [low, high] = [1, most];
  let best = { severity: most, growth: growthAt(most) };
  if (best.growth < least) return null;
  for (let i = 0; i < HALVINGS && Math.abs(best.growth / wanted - 1) > NEAR; i++) {
    if (best.growth < wanted && best.severity === most) break;
    const severity = 1 + Math.sqrt(Math.max(1e-4, low - 1) * (high - 1));
    const growth = growthAt(severity);
    if (growth < wanted) low = severity;
    else high = severity;
    const isNearer = Math.abs(growth - wanted) < Math.abs(best.growth - wanted);
    if (isNearer && growth >= least) best = { severity, growth };
  }
  return { fault: { ...fault, severity: best.severity }, growth: best.growth };
}
