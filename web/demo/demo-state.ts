/** The demonstration as the service tells it; null where this is none. */
import { ask, AskError, type DemoFault, type DemoState, paths, send } from "../live/api.ts";
import { observable } from "../live/observable.ts";
import { incidents, isDemo, snapshots } from "../live/store.ts";
import { keepTrial, keptTrial } from "./kept-trial.ts";
import { nextTrials, type Trial } from "./trial.ts";

export const demo = observable<DemoState | null>(null);
/** What was broken last, and what became of each of it. */
export const trials = observable<readonly Trial[]>([]);
/** Why the last wish was refused; "" where none was. */
export const refusal = observable("");
/** A wish is under way: a second one would break something else as well. */
export const isAsking = observable(false);

const EVERY_MS = 1000;

/** Asks only where the snapshot says that this is a demonstration. */
export function followDemo(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const look = async (): Promise<void> => {
    clearTimeout(timer);
    if (!isDemo.value) return demo.set(null);
    try {
      take(await ask<DemoState>(paths.demo));
    } catch (error) {
      // The line may be down for a moment, without a snapshot afterwards.
      if (error instanceof AskError && error.status !== 0) return demo.set(null);
    }
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(() => void look(), EVERY_MS);
  };
  const stops = [
    snapshots.watch(() => void look()),
    incidents.watch(() => {
      if (demo.value !== null) goOn(demo.value);
    }),
  ];
  if (snapshots.value > 0) void look();
  return () => {
    isOver = true;
    clearTimeout(timer);
    for (const stop of stops) stop();
  };
}

export const breakIt = (kind: DemoFault["kind"]): Promise<void> =>
  wish(() => send<DemoState>(paths.demo, { kind }));
export const fixIt = (): Promise<void> => wish(() => send<DemoState>(paths.demo, {}, "DELETE"));

async function wish(work: () => Promise<DemoState>): Promise<void> {
  if (isAsking.value) return;
  isAsking.set(true);
  refusal.set("");
  try {
    take(await work());
  } catch (error) {
    refusal.set(error instanceof Error ? error.message.slice(0, 300) : "it was refused");
  } finally {
    isAsking.set(false);
  }
}

function take(state: DemoState): void {
  demo.set(state);
  goOn(state);
}

function goOn(state: DemoState): void {
  const kept = state.faults.flatMap((fault) => keptTrial(fault) ?? []);
  const next = nextTrials(trials.value.length > 0 ? trials.value : kept, state, incidents.value);
  for (const one of next) if (!trials.value.includes(one)) keepTrial(one);
  trials.set(next);
}
