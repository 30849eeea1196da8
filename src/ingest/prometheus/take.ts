/** One metric by the best way that the server turns out to know, in as many pieces as it needs. */
import { setTimeout as pause } from "node:timers/promises";
import type { LabelledSeries } from "../metrics/labelled-series.ts";
import { ServerFailure } from "./failure.ts";
import { memoryOf } from "./server-memory.ts";
import type { Server } from "./server.ts";
import { type Span, type Taken, type Wanted, type Way, WAYS } from "./ways.ts";

const ORDER: Readonly<Record<Server["kind"], readonly Way[]>> = {
  prometheus: ["remote-read", "raw", "query-range"],
  "victoria-metrics": ["export", "raw", "query-range"],
};
const NAMES: Readonly<Record<Server["kind"], string>> = {
  prometheus: "Prometheus",
  "victoria-metrics": "VictoriaMetrics",
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
    // Another name's request may have found meanwhile what the server refuses.
    for (let at = this.#first(); ; at = Math.max(at + 1, this.#first())) {
      const way = this.#ways[at]!;
      const isLast = at + 1 >= this.#ways.length;
      // The fastest way, but the one that gateways know least: with any trouble there the plain queries may be well.
      const isShortcut = way === "remote-read" && !isLast;
      try {
        const taken = await (isShortcut
          ? this.#ask(way, wanted, span)
          : this.#patiently(way, wanted, span));
        this.#used.add(way);
        this.bytes += taken.bytes;
        return taken.remarks;
      } catch (failure) {
        if (!(failure instanceof ServerFailure)) throw failure;
        if (isShortcut && isTrouble(failure)) memoryOf(this.#server).noteTrouble(failure.kind);
        else if (failure.kind === "too-much" && span.endMs - span.startMs > LEAST_PIECE_MS) {
          return this.#inHalves(wanted, span);
        } else if (isLast) throw this.#asAskedFor(way, failure);
        else if (isRefusal(failure)) this.#best = Math.max(this.#best, at + 1);
        else throw failure;
      }
    }
  }

  #first(): number {
    const mayAvoid = this.#ways.length > 1 && this.#ways[0] === "remote-read";
    return mayAvoid && memoryOf(this.#server).hasTrouble ? Math.max(1, this.#best) : this.#best;
  }

  /** Where the user chose the way, "there is no such path" is about the choice. */
  #asAskedFor(way: Way, failure: ServerFailure): ServerFailure {
    const isChosen = this.#ways.length === 1;
    if (!isChosen || (failure.kind !== "not-found" && failure.kind !== "foreign")) return failure;
    const known = ORDER[this.#server.kind];
    if (failure.kind === "foreign" && known.includes(way)) return failure;
    const others = known.filter((other) => other !== way).join(", ");
    const words = `it does not know --via ${way}; ${NAMES[this.#server.kind]} knows ${others}`;
    return new ServerFailure("no-such-way", words);
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
    try {
      return await this.#ask(way, wanted, span);
    } catch (failure) {
      if (!(failure instanceof ServerFailure)) throw failure;
      if (failure.kind !== "busy" && failure.kind !== "cut") throw failure;
      const { signal } = this.#server.target;
      await pause(BUSY_PAUSE_MS, undefined, { signal }).catch(() => {});
      return this.#ask(way, wanted, span);
    }
  }

  #ask(way: Way, wanted: Wanted, span: Span): Promise<Taken> {
    const { target } = this.#server;
    return WAYS[way](memoryOf(this.#server).patient(target), wanted, span, this.#series);
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

/** What is not the server's last word: the next metric may come. */
function isTrouble({ kind }: ServerFailure): boolean {
  return kind === "too-much" || kind === "busy" || kind === "cut" || kind === "timeout";
}
