import { afterEach, describe, expect, it, vi } from "vitest";
import type { Incident } from "./api.ts";
import { openFeed } from "./feed.ts";
import { incidents, line } from "./store.ts";

/** A browser's tab and a service, as far as the line sees them. */
function open() {
  const tab = Object.assign(new EventTarget(), { hidden: false });
  const streams: { lastId: string | null; isHeld: boolean; write(text: string): void }[] = [];
  const told: Incident[] = [];
  const asked: string[] = [];
  vi.useFakeTimers();
  vi.stubGlobal("document", tab);
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("removeEventListener", () => {});
  const frames: (() => void)[] = [];
  vi.stubGlobal("requestAnimationFrame", (frame: () => void) => frames.push(frame));
  vi.stubGlobal("fetch", async (path: string, { headers, signal }: RequestInit) => {
    asked.push(path);
    if (!path.endsWith("/events")) return Response.json({ incidents: told });
    const body = new TransformStream<Uint8Array, Uint8Array>();
    const writer = body.writable.getWriter();
    const lastId = (headers as Record<string, string>)["last-event-id"] ?? null;
    const stream = {
      lastId,
      isHeld: true,
      write: (text: string) => void writer.write(new TextEncoder().encode(text)),
    };
    streams.push(stream);
    signal!.addEventListener("abort", () => {
      stream.isHeld = false;
      writer.abort(signal!.reason).catch(() => {});
    });
    return new Response(body.readable);
  });
  const stop = openFeed();
  const turn = (hidden: boolean): void => {
    tab.hidden = hidden;
    tab.dispatchEvent(new Event("visibilitychange"));
  };
  return {
    streams,
    told,
    asked,
    turn,
    stop,
    after: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  };
}

const incident = (id: string): Incident => ({ id, revision: 1, state: "confirmed" }) as Incident;
const event = (number: number, value: unknown): string =>
  `id: b-${number}\ndata: ${JSON.stringify(value)}\n\n`;

describe("the line of a hidden tab", () => {
  let stop = (): void => {};
  afterEach(() => {
    stop();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("holds no connection after a while, still hears of incidents, and goes on where it was", async () => {
    const { streams, told, asked, turn, after, ...rest } = open();
    stop = rest.stop;
    await after(10);
    streams[0]!.write(event(7, { type: "incident", incident: incident("one") }));
    await after(10);
    expect(line.value.state).toBe("up");

    // The frame that was planned never comes: what was heard is there all the same.
    turn(true);
    expect([...incidents.value.keys()]).toEqual(["one"]);
    await after(9000);
    expect(streams[0]!.isHeld).toBe(true);
    await after(2000);
    expect(streams[0]!.isHeld).toBe(false);

    told.push(incident("two"));
    await after(17_000);
    expect([...incidents.value.keys()]).toEqual(["two"]);
    await after(120_000);
    expect(streams).toHaveLength(1);
    expect(line.value.state).toBe("up");

    turn(false);
    await after(10);
    expect(streams.map(({ lastId, isHeld }) => [lastId, isHeld])).toEqual([
      [null, false],
      ["b-7", true],
    ]);
    const polls = asked.length;
    turn(true);
    turn(false);
    await after(14_000);
    expect(streams).toHaveLength(2);
    expect(asked.slice(polls).filter((path) => path.includes("most=200"))).toEqual([]);
  });
});
