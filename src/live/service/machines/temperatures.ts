/**
 * How hot the GPUs of running jobs are, from the site's Prometheus: one small query every quarter of a minute. A server
 * that is away is no harm; it is said once, and values that grow old are forgotten.
 */
import { errorText } from "../../../base/errors.ts";
import { gpuTemperatures } from "../../../pipeline/machines.ts";
import { shortName } from "../../../model/machine-names.ts";
import type { LatestValue, Server } from "../../../ingest/prometheus/prometheus.ts";
import type { RankLayout } from "../job/rank-layout.ts";

export interface TemperatureSource {
  connect(this: void): Promise<Server>;
  readonly match: string;
}

const EVERY_MS = 15_000;
const OLD_MS = 120_000;

export class Temperatures {
  readonly #source: TemperatureSource | null;
  readonly #nowMs: () => number;
  readonly #trouble: (line: string) => void;
  #server: Server | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isBusy = false;
  #isDown = false;
  #known = new Map<string, number>();
  #knownMs = -Infinity;
  /** By layout, until the next values. */
  #columns = new WeakMap<RankLayout, Float32Array>();

  constructor(
    source: TemperatureSource | null,
    nowMs: () => number,
    trouble: (line: string) => void,
  ) {
    this.#source = source;
    this.#nowMs = nowMs;
    this.#trouble = trouble;
  }

  start(): void {
    if (!this.#source) return;
    void this.look();
    this.#timer = setInterval(() => void this.look(), EVERY_MS).unref();
  }

  close(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  /** Never rejects; the next is skipped while one lasts. */
  async look(): Promise<void> {
    const source = this.#source;
    if (!source || this.#isBusy) return;
    this.#isBusy = true;
    try {
      this.#server ??= await source.connect();
      this.#take(await gpuTemperatures(this.#server, source.match));
      this.#isDown = false;
    } catch (error) {
      const why = errorText(error);
      if (!this.#isDown) this.#trouble(`temperatures of GPUs are not known: ${why}`);
      this.#isDown = true;
    } finally {
      this.#isBusy = false;
    }
  }

  /** A column of the layout's ranks. */
  of(layout: RankLayout): Float32Array {
    if (this.#known.size > 0 && this.#nowMs() - this.#knownMs > OLD_MS) this.#take([]);
    const made = this.#columns.get(layout);
    if (made) return made;
    const column = Float32Array.from(layout.machine, (machine, k) => {
      const gpu = layout.gpu[k] ?? null;
      if (machine === null || gpu === null || this.#known.size === 0) return NaN;
      const device = `gpu${gpu}`;
      const exact = this.#known.get(keyOf(machine, device));
      return exact ?? this.#known.get(keyOf(shortName(machine), device)) ?? NaN;
    });
    this.#columns.set(layout, column);
    return column;
  }

  #take(values: readonly LatestValue[]): void {
    this.#known = new Map();
    this.#columns = new WeakMap();
    if (values.length > 0) this.#knownMs = this.#nowMs();
    // Monitoring often says "node003" where the job says "node003.cluster.local", or the other way round.
    for (const { machine, device, value } of values)
      this.#known.set(keyOf(shortName(machine), device), value);
    for (const { machine, device, value } of values) this.#known.set(keyOf(machine, device), value);
  }
}

function keyOf(machine: string, device: string): string {
  return `${machine} ${device}`;
}
