/** The zone that the viewer has chosen, for drawings and lines of text. */
import { type ClockZone, UTC } from "../../src/report/parts/clock-zone.ts";
import { useObservable } from "../live/observable.ts";
import { offsetWords, zone } from "../shell/zone.ts";

const LOCAL: ClockZone = {
  name: (ms) => (Math.abs(ms) < 8.64e15 ? offsetWords(ms) : "your zone"),
  aheadMinutes: (ms) => -new Date(ms).getTimezoneOffset(),
};

export function useClockZone(): ClockZone {
  return useObservable(zone) === "utc" ? UTC : LOCAL;
}
