/** One metric by the best way that the server turns out to know, in as many pieces as it needs. */
import { setTimeout as pause } from "node:timers/promises";
import type { LabelledSeries } from "../metrics/labelled-series.ts";
import { ServerFailure } from "./failure.ts";
import type { Server } from "./server.ts";
import { type Span, type Taken, type Wanted, type Way, WAYS } from "./ways.ts";

const ORDER: Readonly<Record<Server["kind"], readonly Way[]>> = {
  prometheus: ["remote-read", "raw", "query-range"],
  "victoria-metrics": ["export", "raw", "query-range"],
};
/** A piece shorter than this that is still too much will not get better. */
const LEAST_PIECE_MS = 30_000;
const BUSY_PAUSE_MS = 1000;

export class TakeByTheBestWay {
  bytes = 0;
  readonly #server: Server;
  readonly #series: LabelledSeries;
  readonly #ways: readonly Way[];
  readonly #used = new Set<Way>();
  /** The first way that the server has not refused. */
  #best = 0;

  constructor(server: Server, via: "auto" | Way, series: LabelledSeries) {
    this.#server = server;
    this.#series = series;
    this.#ways = via === "auto" ? ORDER[server.kind] : [via];
  }

  ways(): readonly Way[] {
    return [...this.#used];
  }

  /** Resolves to sentences about what came. */
  async take(wanted: Wanted, span: Span): Promise<readonly string[]> {
    const remarks = await this.#take(wanted, span);
    return [...new Set(remarks)].map((remark) => `${wanted.name}: ${remark}.`);
  }

  async #take(wanted: Wanted, span: Span): Promise<readonly string[]> {
    for (;;) {
      const best = this.#best;
      const way = this.#ways[best]!;
      try {
        const taken = await this.#patiently(way, wanted, span);
        this.#used.add(way);
        this.bytes += taken.bytes;
        return taken.remarks;
      } catch (failure) {
        if (!(failure instanceof ServerFailure)) throw failure;
        if (failure.kind === "too-much" && span.endMs - span.startMs > LEAST_PIECE_MS) {
          return this.#inHalves(wanted, span);
        }
        // Another name's request may have found the same already.
        if (!isRefusal(failure) || best + 1 >= this.#ways.length) throw failure;
        this.#best = Math.max(this.#best, best + 1);
      }
    }
  }

  async #inHalves(wanted: Wanted, { startMs, endMs }: Span): Promise<readonly string[]> {
    // On a step, so that the halves of a query_range have the points of the whole.
    const steps = Math.max(1, Math.floor((endMs - startMs) / 2 / wanted.stepMs));
    const middle = Math.min(startMs + steps * wanted.stepMs, endMs);
    const before = await this.#take(wanted, { startMs, endMs: middle - 1 });
    return [...before, ...(await this.#take(wanted, { startMs: middle, endMs }))];
  }

  /** A busy server is asked a second time. */
  async #patiently(way: Way, wanted: Wanted, span: Span): Promise<Taken> {
    const { target } = this.#server;
    try {
      return await WAYS[way](target, wanted, span, this.#series);
    } catch (failure) {
      if (!(failure instanceof ServerFailure)) throw failure;
      if (failure.kind !== "busy" && failure.kind !== "cut") throw failure;
      await pause(BUSY_PAUSE_MS, undefined, { signal: target.signal }).catch(() => {});
      return WAYS[way](target, wanted, span, this.#series);
    }
  }
}

/** Whether another way may get what this one did not. */
function isRefusal({ kind }: ServerFailure): boolean {
  return (
    kind === "not-found" ||
    kind === "foreign" ||
    kind === "auth" ||
    kind === "redirect" ||
    kind === "bad-query"
  );
}
