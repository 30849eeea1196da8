/** What to do: the verdict's advice, and the proposals of an incident with what became of them. */
import type { ComponentChildren, VNode } from "preact";
import { cutText } from "../../base/text.ts";
import type { ActionState, IncidentAction } from "../../model/incident.ts";
import type { Mitigation } from "../../model/mitigation.ts";
import type { WhatIf } from "../../model/picture.ts";
import type { Action, Verdict } from "../../model/verdict.ts";
import { gainOf, gainWords } from "../action-gain.ts";
import { Advice } from "./advice.tsx";
import { type ShowTime, utcTime } from "./moment.tsx";

const MOST_TARGET = 200;
const MOST_WHY = 2_000;
const MOST_OUTCOME = 4_000;
const MOST_ACTIONS = 40;

type Plan = Mitigation | null | undefined;

interface ActionsProps {
  readonly actions: readonly Action[];
  readonly mitigation?: Plan;
  readonly pid?: number | null;
  readonly onCopy?: ((command: string) => void) | undefined;
}

/** Advice that the plan gives in full elsewhere is not repeated, for pages that show both. */
export function unplannedActions({
  actions,
  mitigation,
}: Pick<Verdict, "actions" | "mitigation">): readonly Action[] {
  const planned = new Set(mitigation?.steps.map((step) => step.do));
  return actions.filter((action) => !planned.has(action.do));
}

export function Actions({ actions, mitigation, pid = null, onCopy }: ActionsProps): VNode | null {
  if (actions.length === 0) return null;
  return (
    <ol class="fl-actions">
      {actions.slice(0, MOST_ACTIONS).map((action) => (
        <li>
          <b>{cutText(action.do, MOST_TARGET)}</b>{" "}
          <span class="fl-target">{cutText(action.target, MOST_TARGET)}</span>
          <p class="fl-p">
            <Advice text={cutText(action.why, MOST_WHY)} pid={pid} onCopy={onCopy} />
          </p>
          <Expected action={action} mitigation={mitigation} />
        </li>
      ))}
    </ol>
  );
}

const STATES: Readonly<Record<ActionState, readonly [words: string, tone: string]>> = {
  proposed: ["proposed", "fl-open"],
  approved: ["approved, about to run", "fl-warn"],
  running: ["running", "fl-warn"],
  done: ["done", "fl-good"],
  failed: ["failed", "fl-bad"],
  dismissed: ["dismissed", "fl-open"],
  "dry-run": ["tried without effect", "fl-open"],
};

interface IncidentActionsProps {
  readonly actions: readonly IncidentAction[];
  readonly mitigation?: Plan;
  readonly whatIf?: WhatIf | null | undefined;
  /** Buttons to approve and to dismiss; nothing in a report. */
  readonly buttons?: ((action: IncidentAction) => ComponentChildren) | undefined;
  readonly onCopy?: ((command: string) => void) | undefined;
  readonly time?: ShowTime;
}

export function IncidentActions({
  actions,
  mitigation,
  whatIf,
  buttons,
  onCopy,
  time = utcTime,
}: IncidentActionsProps): VNode | null {
  if (actions.length === 0) return null;
  return (
    <ul class="fl-proposals">
      {actions.slice(0, MOST_ACTIONS).map((action) => {
        const [words, tone] = STATES[action.state] ?? [action.state, "fl-open"];
        return (
          <li key={action.id} class="fl-proposal">
            <p class="fl-line">
              <b>{cutText(action.do, MOST_TARGET)}</b>
              <span class="fl-target">{cutText(action.target, MOST_TARGET)}</span>
              <span class={`fl-state ${tone}`}>{words}</span>
              {action.state !== "proposed" && <span class="fl-note">{time(action.changedMs)}</span>}
            </p>
            <p class="fl-p">
              <Advice text={cutText(action.why, MOST_WHY)} onCopy={onCopy} />
            </p>
            <Expected action={action} mitigation={mitigation} whatIf={whatIf} />
            {action.state === "proposed" && !action.canRun && (
              <p class="fl-note">No hook is configured for this: do it by hand.</p>
            )}
            {action.outcome !== "" && (
              <pre class="fl-outcome">{cutText(action.outcome, MOST_OUTCOME)}</pre>
            )}
            {buttons && <div class="fl-line fl-buttons">{buttons(action)}</div>}
          </li>
        );
      })}
    </ul>
  );
}

function Expected({
  action,
  mitigation,
  whatIf = null,
}: {
  readonly action: { readonly do: string; readonly target: string };
  readonly mitigation: Plan;
  readonly whatIf?: WhatIf | null | undefined;
}): VNode | null {
  const gain = gainOf(action, mitigation, whatIf);
  if (gain === null) return null;
  return (
    <p class="fl-p fl-gain">
      <b>Expected:</b> {gainWords(gain)}
    </p>
  );
}
