/**
 * Bayesian online change-point detection (Adams & MacKay 2007; Greyhound §4.2): after every point, how likely
 * is it that the present level began r points ago? Normal data of unknown mean and variance: a Normal-Gamma
 * prior, so that the predictive is a Student-t.
 *
 * With a constant hazard the normalised probability of r = 0 equals the hazard, whatever the data: the paper's
 * alarm "P(r = 0) > 0.9" can never fire. What changes after a jump is P(r ≤ L) a few points later, and the most
 * likely r, which falls.
 */
import { getOrInsert } from "../base/group-by.ts";

interface NormalGamma {
  readonly mean: number;
  /** Points that the prior mean is worth. */
  readonly kappa: number;
  /** Half the points that the prior variance is worth. */
  readonly alpha: number;
  /** alpha × prior variance. */
  readonly beta: number;
}

interface BocpdOptions {
  /** Expected points between changes: 1 / hazard. */
  readonly lambda: number;
  readonly prior: NormalGamma;
  /** Run lengths less likely than this are forgotten: what keeps a point at a constant cost. */
  readonly prune?: number;
}

const PRUNE = 1e-4;
const FIRST_CAPACITY = 64;

export class Bocpd {
  readonly #prior: NormalGamma;
  readonly #logHazard: number;
  readonly #logStay: number;
  readonly #prune: number;
  readonly #gammaRatios: GammaRatios;
  #count = 0;
  #time = 0;
  /** Columns of the hypotheses, the longest run first. */
  #start = new Float64Array(FIRST_CAPACITY);
  #logP = new Float64Array(FIRST_CAPACITY);
  #p = new Float64Array(FIRST_CAPACITY);
  #mean = new Float64Array(FIRST_CAPACITY);
  #beta = new Float64Array(FIRST_CAPACITY);

  constructor({ lambda, prior, prune = PRUNE }: BocpdOptions) {
    this.#prior = prior;
    this.#logHazard = -Math.log(lambda);
    this.#logStay = Math.log1p(-1 / lambda);
    this.#prune = prune;
    this.#gammaRatios = gammaRatios(prior.alpha);
    this.#begin(0);
  }

  /** Points seen. */
  get time(): number {
    return this.#time;
  }

  /** Hypotheses that are kept. */
  get hypotheses(): number {
    return this.#count;
  }

  push(x: number): void {
    this.#reserve(this.#count + 1);
    let sum = 0;
    let most = -Infinity;
    for (let i = 0; i < this.#count; i++) {
      const logP = this.#logP[i]! + this.#predict(i, x);
      this.#logP[i] = logP;
      if (logP > most) most = logP;
    }
    for (let i = 0; i < this.#count; i++) {
      const p = Math.exp(this.#logP[i]! - most);
      this.#p[i] = p;
      sum += p;
    }
    // Growth and change have the same evidence: the sum is the normaliser of both.
    const logSum = Math.log(sum) + most;
    const keep = this.#prune * sum;
    let kept = 0;
    for (let i = 0; i < this.#count; i++) {
      if (this.#p[i]! < keep) continue;
      const points = this.#time - this.#start[i]!;
      const kappa = this.#prior.kappa + points;
      const off = x - this.#mean[i]!;
      this.#start[kept] = this.#start[i]!;
      this.#logP[kept] = this.#logP[i]! - logSum + this.#logStay;
      this.#beta[kept] = this.#beta[i]! + (kappa * off * off) / (2 * (kappa + 1));
      this.#mean[kept] = this.#mean[i]! + off / (kappa + 1);
      kept++;
    }
    this.#count = kept;
    this.#time++;
    this.#begin(this.#logHazard);
  }

  /** Log predictive density of x under hypothesis i: Student-t with 2 alpha degrees of freedom. */
  #predict(i: number, x: number): number {
    const points = this.#time - this.#start[i]!;
    const kappa = this.#prior.kappa + points;
    const alpha = this.#prior.alpha + points / 2;
    const spread = (2 * this.#beta[i]! * (kappa + 1)) / kappa;
    const off = x - this.#mean[i]!;
    return (
      this.#gammaRatios.at(points) -
      0.5 * Math.log(Math.PI * spread) -
      (alpha + 0.5) * Math.log1p((off * off) / spread)
    );
  }

  /** A run that begins with the next point. */
  #begin(logP: number): void {
    const i = this.#count++;
    this.#start[i] = this.#time;
    this.#logP[i] = logP;
    this.#mean[i] = this.#prior.mean;
    this.#beta[i] = this.#prior.beta;
  }

  #reserve(count: number): void {
    if (count <= this.#start.length) return;
    const grow = (old: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> => {
      const larger = new Float64Array(old.length * 2);
      larger.set(old);
      return larger;
    };
    this.#start = grow(this.#start);
    this.#logP = grow(this.#logP);
    this.#p = grow(this.#p);
    this.#mean = grow(this.#mean);
    this.#beta = grow(this.#beta);
  }

  /** The most likely run: its first point and mean. The run that has not begun does not count. */
  get mostLikely(): { readonly start: number; readonly mean: number } {
    let best = 0;
    for (let i = 1; i < this.#count - 1; i++) if (this.#logP[i]! > this.#logP[best]!) best = i;
    return { start: this.#start[best]!, mean: this.#mean[best]! };
  }

  /** P(the present level began at point `index` or later), the run that has not begun left out. */
  probabilitySince(index: number): number {
    let since = 0;
    let all = 0;
    for (let i = 0; i < this.#count - 1; i++) {
      const p = Math.exp(this.#logP[i]!);
      all += p;
      if (this.#start[i]! >= index) since += p;
    }
    return all > 0 ? since / all : 0;
  }

  /** Every hypothesis: its first point and log probability, the run that has not begun included. */
  forEach(see: (start: number, logP: number) => void): void {
    for (let i = 0; i < this.#count; i++) see(this.#start[i]!, this.#logP[i]!);
  }
}

/** ln Γ(a + 1/2) - ln Γ(a) for a = alpha, alpha + 1/2, alpha + 1, …: the same for all series, so kept. */
class GammaRatios {
  readonly #alpha: number;
  readonly #known: number[] = [];

  constructor(alpha: number) {
    this.#alpha = alpha;
  }

  at(points: number): number {
    for (let i = this.#known.length; i <= points; i++)
      this.#known.push(logGammaRatio(this.#alpha + i / 2));
    return this.#known[points]!;
  }
}

const ratios = new Map<number, GammaRatios>();

function gammaRatios(alpha: number): GammaRatios {
  return getOrInsert(ratios, alpha, () => new GammaRatios(alpha));
}

/** By Stirling's series for the ratio, good to 1e-10. */
function logGammaRatio(a: number): number {
  let shift = 0;
  let x = a;
  while (x < 12) {
    // Γ(x + 1/2)/Γ(x) = x / (x + 1/2) × Γ(x + 3/2)/Γ(x + 1)
    shift += Math.log(x / (x + 0.5));
    x += 1;
  }
  const y = 1 / x;
  return (
    shift +
    0.5 * Math.log(x) +
    y * (-1 / 8 + y * y * (1 / 192 + y * y * (-1 / 640 + (y * y * 17) / 14336)))
  );
}
