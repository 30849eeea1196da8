/** The viewer's clock, once a second, for whatever says how long something lasts. */
import { type Observable, observable } from "./observable.ts";

const ticking = observable(Date.now());
let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Runs only while somebody looks. */
export const now: Observable<number> = {
  get value() {
    return watchers === 0 ? Date.now() : ticking.value;
  },
  set: (value) => ticking.set(value),
  watch(listener) {
    if (watchers++ === 0) {
      ticking.set(Date.now());
      timer = setInterval(() => ticking.set(Date.now()), 1000);
    }
    const stop = ticking.watch(listener);
    return () => {
      stop();
      if (--watchers === 0) clearInterval(timer);
    };
  },
};
