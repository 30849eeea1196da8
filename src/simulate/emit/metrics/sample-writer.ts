/** Writes series as OpenMetrics text, in pieces. */
import type { Simulation } from "../../cluster/times.ts";
import { hash, STREAM, uniform } from "../../cluster/noise.ts";
import type { Writer } from "../emitter.ts";
import type { MetricType } from "./families.ts";

const FLUSH_CHARS = 1 << 16;
/** Prometheus loses a scrape now and then. */
const LOST_SHARE = 0.0005;
/** One machine in a hundred has a hiccup of some seconds in twenty: Minder's challenge 4, short noise. */
const HICCUP_SHARE = 0.01;
const HICCUP_SAMPLES = 20;
const HICCUP_NOISE = 4;

export interface Series {
  readonly name: string;
  readonly type: MetricType;
  readonly decimals: number;
  /** Of the family, for its noise. */
  readonly id: number;
  /** Rank or machine, for its noise. */
  readonly owner: number;
  readonly machine: number;
  readonly labels: string;
}

export class SampleWriter {
  readonly #writer: Writer;
  readonly #seed: number;
  readonly #noise: number;
  readonly #intervalS: number;
  readonly #epochS: number;
  /** "1794700801" by sample, shared by all series. */
  readonly #seconds: string[] = [];
  #text = "";

  constructor({ spec }: Simulation, writer: Writer, intervalS: number) {
    this.#writer = writer;
    this.#seed = spec.seed ^ STREAM.metrics;
    this.#noise = spec.noise;
    this.#intervalS = intervalS;
    this.#epochS = Number(spec.epochNs / 1_000_000_000n);
  }

  /** A counter's family is named without _total (OpenMetrics 1.0). */
  head({ name, type, help }: { name: string; type: MetricType; help: string }): void {
    const family = type === "counter" ? name.replace(/_total$/, "") : name;
    this.#text += `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n`;
  }

  /** `value` gives a level, or what a counter gains in a second; NaN where there is no sample. */
  series(
    { name, type, decimals, id, owner, machine, labels }: Series,
    samples: number,
    value: (sample: number, noise: number, bias: number, second: number) => number,
  ): void {
    const head = `${name}{${labels}} `;
    // Every target is scraped at an instant of its own within the interval.
    const phase = hash(this.#seed, machine, 0, 0x9a) % Math.min(1000, this.#intervalS * 1000);
    const tail = `.${String(phase).padStart(3, "0")}\n`;
    const bias = this.#noise * (2 * uniform(this.#seed, owner, id, 0xb1) - 1);
    // Counters began when the machine did.
    let sum = type === "gauge" ? 0 : 1000 * (hash(this.#seed, owner, id, 0xc0) % 100_000);
    for (let sample = 0; sample < samples; sample++) {
      const noise = this.#noiseAt(owner, id, machine, sample);
      const level = value(sample, noise, bias, sample * this.#intervalS);
      if (Number.isNaN(level)) continue;
      if (type !== "gauge") sum += level * this.#intervalS;
      const lost = uniform(this.#seed, machine, sample, 0x105) < LOST_SHARE * this.#noise;
      if (lost) continue;
      const shown = type === "gauge" ? level : sum;
      this.#text += head + format(shown, decimals) + " " + this.#second(sample) + tail;
      if (this.#text.length > FLUSH_CHARS) this.flush();
    }
    this.flush();
  }

  flush(): void {
    this.#writer.write(this.#text);
    this.#text = "";
  }

  #noiseAt(owner: number, id: number, machine: number, sample: number): number {
    const noise = this.#noise * (2 * uniform(this.#seed, owner, id, sample) - 1);
    const slot = Math.floor(sample / HICCUP_SAMPLES);
    const hiccup = uniform(this.#seed, machine, slot, 0x41c + id);
    if (hiccup >= HICCUP_SHARE * this.#noise) return noise;
    const until = 2 + (hash(this.#seed, machine, slot, 0x41d) % 8);
    return sample % HICCUP_SAMPLES < until ? HICCUP_NOISE * noise : noise;
  }

  #second(sample: number): string {
    return (this.#seconds[sample] ??= String(
      this.#epochS + Math.floor((sample + 1) * this.#intervalS),
    ));
  }
}

/** toFixed is slow, and most values are whole. */
function format(value: number, decimals: number): string {
  if (decimals === 0) return String(Math.round(value));
  const scale = 10 ** decimals;
  return String(Math.round(value * scale) / scale);
}
