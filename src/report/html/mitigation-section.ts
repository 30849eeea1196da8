/** "While it lasts": what can be done about a slow-down before it is mended, cheapest first. */
import type { Mitigation } from "../../model/mitigation.ts";
import { stepHead, stepHow, stepWhen } from "../mitigation-words.ts";
import { html, type Markup } from "./escape.ts";

export function renderMitigation(plan: Mitigation): Markup {
  return html`<p class="note">
      Each step is due when it would have saved as much as it costs. However long the fault lasts,
      that loses at most ${plan.bound.toFixed(1)} times what the best choice in hindsight would have
      lost.
    </p>
    <ol class="fl-actions">
      ${plan.steps.map(
        (step) =>
          html`<li>
            <b>${stepHead(step, plan)}</b>
            <p>${stepWhen(step, plan)}</p>
            ${stepHow(step).map((how) => html`<p><code>${how}</code></p>`)}
          </li>`,
      )}
    </ol>
    ${plan.assumes.length > 0 && html`<p class="note">Taken for granted: ${plan.assumes.join("; ")}.</p>`}`;
}
