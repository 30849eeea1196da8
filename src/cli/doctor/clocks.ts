/** How far clocks are apart: this machine's, the service's, agents', Prometheus'. */
import { type Line, linesOf, some } from "./line.ts";

export interface ClocksSeen {
  /** Name and its clock less ours, milliseconds. */
  readonly clocks: readonly { readonly name: string; readonly offsetMs: number }[];
}

/** As much as the service takes for the way of a report. Prometheus tells whole seconds. */
const TOLERATED_MS = 2000;
const { ok, warning, none } = linesOf("clocks");

export function judgeClocks({ clocks }: ClocksSeen): Line {
  if (clocks.length === 0) return none("nothing to compare this machine's clock with");
  const off = clocks
    .filter(({ offsetMs }) => Math.abs(offsetMs) > TOLERATED_MS)
    .sort((a, b) => Math.abs(b.offsetMs) - Math.abs(a.offsetMs));
  if (off.length === 0) return ok("clocks agree within 2 s");
  const words = off.map(
    ({ name, offsetMs }) =>
      `${name} ${Math.round(Math.abs(offsetMs) / 1000)} s ${offsetMs > 0 ? "ahead" : "behind"}`,
  );
  return warning(
    `clocks are apart: ${some(words)} of this machine`,
    "sudo chronyc makestep    # on the machine whose clock is wrong; chronyc tracking shows it",
  );
}
