/**
 * The line to the service: server-sent events, read with fetch, for EventSource cannot send a token. Comes back by
 * itself, goes on where it was as long as the service still knows, and writes what it hears into the store. A tab that
 * is hidden for a while rests: browsers open six connections to a host over HTTP/1.1, for all tabs together.
 */
import type { Incident } from "./api.ts";
import { refreshOpen } from "./refresh-open.ts";
import { parseEvents } from "./sse.ts";
import {
  actionsSwitch,
  handlings,
  incidents,
  isDemo,
  jobs,
  type Line,
  line,
  mutes,
  newIterations,
  snapshots,
} from "./store.ts";
import { type FeedEvent, takeEvents } from "./take-events.ts";
import { headers, tokens } from "./token.ts";
import { watchOpen } from "./watch-open.ts";

const FIRST_WAIT_MS = 500;
const MOST_WAIT_MS = 10_000;
/** The service's heart beats every 15 s: two beats missed are a line that is gone, whatever the browser believes. */
const SILENCE_MS = 35_000;
const STEADY_MS = 5000;
/** Events that may wait for a frame: a hidden tab gets none. */
const MOST_WAITING = 2000;
const HIDDEN_FLUSH_MS = 1000;
/** Who looks into another tab for a moment loses nothing. */
const REST_AFTER_MS = 10_000;
const RESTING = new Error("the tab is hidden");

/** Half of it is chance: pages of a whole company must not come back in the same instant. */
export function waitMs(attempt: number, random: number): number {
  const most = Math.min(MOST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10));
  return most * (0.5 + 0.5 * random);
}

class Refused extends Error {}

/** Returns how to stop. */
export function openFeed(): () => void {
  let stopped = false;
  let lastId = "";
  let attempt = 0;
  let heardMs = Date.now();
  let request = new AbortController();
  let wake = (): void => {};
  const waiting: FeedEvent[] = [];
  let isPlanned = false;
  let isResting = false;
  let restTimer: ReturnType<typeof setTimeout> | undefined;
  let stopWatching = (): void => {};

  const flush = (): void => {
    isPlanned = false;
    if (waiting.length === 0) return;
    const taken = takeEvents({ jobs: jobs.value, incidents: incidents.value }, waiting.splice(0));
    jobs.set(taken.jobs);
    incidents.set(taken.incidents);
    if (taken.isDemo !== null) isDemo.set(taken.isDemo);
    if (taken.actions !== null) actionsSwitch.set(taken.actions);
    if (taken.handlings.length > 0) {
      const changed = taken.handlings.map((one) => [one.incident, one] as const);
      handlings.set(new Map([...handlings.value, ...changed]));
    }
    if (taken.mutes !== null) mutes.set(taken.mutes);
    if (taken.snapshots > 0) snapshots.set(snapshots.value + taken.snapshots);
    for (const rows of taken.iterations) newIterations.set(rows);
  };
  const plan = (): void => {
    if (waiting.length > MOST_WAITING) flush();
    if (isPlanned) return;
    isPlanned = true;
    if (document.hidden) setTimeout(flush, HIDDEN_FLUSH_MS);
    else requestAnimationFrame(flush);
  };

  const say = (next: "up" | "lost" | "refused", why = ""): void => {
    const before = line.value;
    // Before the first connection there is nothing to lose; and it stays lost since the first failure.
    const state = next === "lost" && before.state === "connecting" ? "connecting" : next;
    if (state === before.state && !("why" in before && before.why !== why)) return;
    const sinceMs = state === before.state ? before.sinceMs : Date.now();
    const said: Line =
      state === "lost" || state === "refused" ? { state, sinceMs, why } : { state, sinceMs };
    line.set(said);
  };

  const listen = async (): Promise<void> => {
    const response = await fetch("/api/v1/events", {
      cache: "no-store",
      headers: {
        accept: "text/event-stream",
        ...headers("read"),
        ...(lastId === "" ? {} : { "last-event-id": lastId }),
      },
      signal: request.signal,
    });
    if (!response.ok || !response.body) {
      const { error } = (await response.json().catch(() => ({}))) as { error?: string };
      const why = error ?? `the service answered with status ${response.status}`;
      throw response.status === 401 || response.status === 403 ? new Refused(why) : new Error(why);
    }
    const parser = parseEvents();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      heardMs = Date.now();
      say("up");
      for (const { data } of parser.push(chunk.value)) {
        const event = eventOf(data);
        if (event) waiting.push(event);
      }
      if (parser.lastId !== "") lastId = parser.lastId;
      plan();
    }
    throw new Error("the service ended the connection");
  };

  const run = async (): Promise<void> => {
    while (!stopped) {
      if (isResting) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      request = new AbortController();
      heardMs = Date.now();
      const startMs = Date.now();
      let isRefused = false;
      try {
        await listen();
      } catch (error) {
        isRefused = error instanceof Refused;
        if (stopped) return;
        // To the viewer the line is as it was: it is there again before anything can be read.
        if (request.signal.reason === RESTING) continue;
        // One that takes everybody in and throws them out again must not be run at.
        if (Date.now() - startMs > STEADY_MS) attempt = 0;
        say(isRefused ? "refused" : "lost", isRefused ? (error as Error).message : wordsOf(error));
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
        // A token that is refused is refused again; the viewer has to come with another one.
        if (!isRefused) setTimeout(resolve, waitMs(attempt++, Math.random()));
      });
    }
  };

  const watchdog = setInterval(() => {
    if (Date.now() - heardMs > SILENCE_MS) request.abort(new Error("no data for 35 s"));
  }, 5000);
  const rest = (): void => {
    // One that is refused holds no connection, and would be refused again.
    if (line.value.state === "refused") return;
    isResting = true;
    request.abort(RESTING);
    stopWatching = watchOpen(takeOpen);
  };
  /** An open one that is not told any more has ended; how it did comes when the line is back. */
  const takeOpen = (open: readonly Incident[], areAll: boolean): void => {
    flush();
    const told = new Set(open.map(({ id }) => id));
    const left = [...incidents.value].filter(
      ([id, { state }]) => state === "resolved" || told.has(id),
    );
    if (areAll && left.length < incidents.value.size) incidents.set(new Map(left));
    for (const incident of open) waiting.push({ type: "incident", incident });
    plan();
  };
  const turn = (): void => {
    // A frame that was planned before the tab was hidden may never come.
    flush();
    clearTimeout(restTimer);
    stopWatching();
    isResting = false;
    if (document.hidden) restTimer = setTimeout(rest, REST_AFTER_MS);
    else comeBack();
  };
  const comeBack = (): void => {
    if (document.hidden) return;
    // After sleep the connection may be dead without knowing.
    if (line.value.state === "up" && Date.now() - heardMs > SILENCE_MS / 2)
      request.abort(new Error("the computer slept"));
    attempt = 0;
    if (line.value.state !== "refused") wake();
  };
  let usedToken = headers("read")["authorization"];
  const withToken = (): void => {
    const given = headers("read")["authorization"];
    if (given === usedToken) return;
    usedToken = given;
    request.abort(new Error("another token"));
    lastId = "";
    attempt = 0;
    wake();
  };
  document.addEventListener("visibilitychange", turn);
  if (document.hidden) turn();
  addEventListener("online", comeBack);
  const stopTokens = tokens.watch(withToken);
  const stopRefresh = refreshOpen((event) => {
    waiting.push(event);
    plan();
  });
  void run();

  return () => {
    stopped = true;
    clearInterval(watchdog);
    clearTimeout(restTimer);
    stopWatching();
    document.removeEventListener("visibilitychange", turn);
    removeEventListener("online", comeBack);
    stopTokens();
    stopRefresh();
    request.abort();
    wake();
  };
}

/** null for what is no event: it must not stop those behind it. */
function eventOf(data: string): FeedEvent | null {
  try {
    return JSON.parse(data) as FeedEvent;
  } catch {
    return null;
  }
}

function wordsOf(error: unknown): string {
  // What fetch says of a service that is not there differs by browser and helps nobody.
  if (error instanceof TypeError) return "the service cannot be reached";
  return error instanceof Error ? error.message : String(error);
}
