/** Writes series as OpenMetrics text, in pieces. */
import type { Simulation } from "../../cluster/times.ts";
import { hash, STREAM } from "../../cluster/noise.ts";
import type { Writer } from "../emitter.ts";
import type { MetricType } from "./families.ts";

const FLUSH_CHARS = 1 << 16;

interface Series {
  readonly name: string;
  readonly type: MetricType;
  readonly decimals: number;
  /** Of the family and of its GPU or machine: where a counter stands at first. */
  readonly id: number;
  readonly owner: number;
  readonly machine: number;
  readonly labels: string;
}

export class SampleWriter {
  readonly #writer: Writer;
  readonly #seed: number;
  readonly #intervalS: number;
  readonly #epochS: number;
  /** "1794700801" by sample, shared by all series. */
  readonly #seconds: string[] = [];
  #text = "";

  constructor({ spec }: Simulation, writer: Writer, intervalS: number) {
    this.#writer = writer;
    this.#seed = spec.seed ^ STREAM.metrics;
    this.#intervalS = intervalS;
    this.#epochS = Number(spec.epochNs / 1_000_000_000n);
  }

  /** A counter's family is named without _total (OpenMetrics 1.0). */
  head({ name, type, help }: { name: string; type: MetricType; help: string }): void {
    const family = type === "counter" ? name.replace(/_total$/, "") : name;
    this.#text += `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n`;
  }

  /** `values` are levels, or what a counter gains in a second; NaN where there is no sample. */
  series(
    { name, type, decimals, id, owner, machine, labels }: Series,
    values: Float64Array,
    lost: Uint8Array | null,
  ): void {
    const head = `${name}{${labels}} `;
    // Every target is scraped at an instant of its own within the interval.
    const phase = hash(this.#seed, machine, 0, 0x9a) % Math.min(1000, this.#intervalS * 1000);
    const tail = `.${String(phase).padStart(3, "0")}\n`;
    // Counters began when the machine did.
    let sum = type === "gauge" ? 0 : 1000 * (hash(this.#seed, owner, id, 0xc0) % 100_000);
    for (let sample = 0; sample < values.length; sample++) {
      const level = values[sample]!;
      if (Number.isNaN(level)) continue;
      // A counter goes on while nobody reads it.
      if (type !== "gauge") sum += level * this.#intervalS;
      if (lost?.[sample] === 1) continue;
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
