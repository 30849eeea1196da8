/** What an iteration takes, took, and would take if a suspect did as its peers do. */
import type { VNode } from "preact";
import { cutText } from "../../base/text.ts";
import type { WhatIf as WhatIfPicture } from "../../model/picture.ts";
import { time } from "../mitigation-words.ts";

const MOST_BARS = 12;
const MOST_LABEL = 160;
const KINDS = { now: "fl-bad", before: "fl-open", without: "fl-good" } as const;

export function WhatIf({ whatIf }: { readonly whatIf: WhatIfPicture }): VNode {
  const bars = whatIf.bars.filter(({ ms }) => Number.isFinite(ms) && ms >= 0).slice(0, MOST_BARS);
  const most = Math.max(...bars.map(({ ms }) => ms), 1e-9);
  const nowMs = bars.find(({ kind }) => kind === "now")?.ms;
  return (
    <div class="fl-what-if">
      <p class="fl-p">{cutText(whatIf.says, 1_000)}</p>
      <ul>
        {bars.map(({ label, ms, kind }) => (
          <li class={KINDS[kind] ?? "fl-open"}>
            <span>{cutText(label, MOST_LABEL)}</span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect class="fl-track" width="100" height="10" />
              <rect
                class="fl-fill"
                width={Math.max(0.5, Math.round((1000 * ms) / most) / 10)}
                height="10"
              />
            </svg>
            <span class="fl-figures">
              <b>{time(ms)}</b> {kind === "now" ? "" : changeWords(ms, nowMs)}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** "−28 %", against what an iteration takes now. */
export function changeWords(ms: number, nowMs: number | undefined): string {
  if (nowMs === undefined || !(nowMs > 0)) return "";
  const change = Math.round(100 * (ms / nowMs - 1));
  return change === 0 ? "±0 %" : `${change < 0 ? "−" : "+"}${Math.abs(change)} %`;
}
