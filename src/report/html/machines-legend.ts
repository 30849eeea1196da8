/** What the lines of the small plots mean. */
import { html, type Markup } from "./escape.ts";
import type { TimeAxis } from "./machines-scale.ts";
import { legend } from "./parts-of-pages.ts";

const KEYS: readonly (readonly [string, Markup])[] = [
  ["this machine", html`<path class="own" d="M2 6H20" />`],
  ["middle of its peers", html`<path class="peers-middle" d="M1 6H21" />`],
  ["most peers (10–90 %)", html`<path class="peers" d="M0 1h22v10h-22z" />`],
  [
    "time in which it differed from them",
    html`<rect class="unlike" width="22" height="12" /><path class="onset" d="M.5 0V12" />`,
  ],
];

export function renderMachineLegend({ zone, fromS }: Pick<TimeAxis, "zone" | "fromS">): Markup {
  const times = html`<li>
    all times ${zone.name(1000 * fromS)}, the same time axis in all plots
  </li>`;
  return legend("machine-plot machine-key", [22, 12], KEYS, times);
}
