/** What to do: the verdict's advice, and the proposals of an incident with what became of them. */
import type { ComponentChildren, VNode } from "preact";
import { capital, cutText } from "../../base/text.ts";
import type { ActionState, IncidentAction } from "../../model/incident.ts";
import type { Action } from "../../model/verdict.ts";
import { gainOf, gainWords, type Planned } from "../action-gain.ts";
import { actionTitle } from "../action-words.ts";
import { outcomeWords } from "../outcome-words.ts";
import { Advice, Command } from "./advice.tsx";
import { type ShowTime, utcTime } from "./moment.tsx";

const MOST_TARGET = 200;
const MOST_WHY = 2_000;
const MOST_OUTCOME = 4_000;
const MOST_ACTIONS = 40;

interface ActionsProps {
  readonly actions: readonly Action[];
  /** What an action brings. */
  readonly verdict?: Planned;
  readonly pid?: number | null;
  readonly onCopy?: ((command: string) => void) | undefined;
}

export function Actions({ actions, verdict, pid = null, onCopy }: ActionsProps): VNode | null {
  if (actions.length === 0) return null;
  return (
    <ol class="fl-actions">
      {actions.slice(0, MOST_ACTIONS).map((action) => (
        <li>
          <b>{cutText(actionTitle(action), MOST_TARGET)}</b>{" "}
          <span class="fl-target">{cutText(action.target, MOST_TARGET)}</span>
          <p class="fl-p">
            <Advice text={cutText(action.why, MOST_WHY)} pid={pid} onCopy={onCopy} />
          </p>
          <CommandLine command={action.command} onCopy={onCopy} />
          <Expected action={action} verdict={verdict} />
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
  "dry-run": ["dry run: nothing was changed", "fl-open"],
  undoing: ["being undone", "fl-warn"],
  undone: ["undone", "fl-open"],
};

interface IncidentActionsProps {
  readonly actions: readonly IncidentAction[];
  /** What an action brings. */
  readonly verdict?: Planned | undefined;
  /** Buttons to approve and to dismiss; nothing in a report. */
  readonly buttons?: ((action: IncidentAction) => ComponentChildren) | undefined;
  readonly onCopy?: ((command: string) => void) | undefined;
  readonly time?: ShowTime;
}

export function IncidentActions({
  actions,
  verdict,
  buttons,
  onCopy,
  time = utcTime,
}: IncidentActionsProps): VNode | null {
  if (actions.length === 0) return null;
  return (
    <ul class="fl-proposals">
      {inPlace(actions).map((action) => {
        const [words, tone] = STATES[action.state] ?? [action.state, "fl-open"];
        return (
          <li key={action.id} class="fl-proposal">
            <p class="fl-line">
              <b>{cutText(actionTitle(action), MOST_TARGET)}</b>
              <span class="fl-target">{cutText(action.target, MOST_TARGET)}</span>
              <span class={`fl-state ${tone}`}>{words}</span>
              {action.state !== "proposed" && <span class="fl-note">{time(action.changedMs)}</span>}
            </p>
            {buttons && <div class="fl-line fl-buttons">{buttons(action)}</div>}
            {outcomeWords(action) !== "" && (
              <p class="fl-p fl-outcome">{cutText(outcomeWords(action), MOST_OUTCOME)}</p>
            )}
            <p class="fl-p fl-why">
              <Advice text={cutText(action.why, MOST_WHY)} onCopy={onCopy} />
            </p>
            <Expected action={action} verdict={verdict} />
          </li>
        );
      })}
    </ul>
  );
}

/** Of what would tell, on the first screen. */
const MOST_HELP = 2;
/** What takes a machine out comes first; then by name. A card never changes its place, whatever becomes of it. */
const FIRST = ["cordon-node", "exclude-node", "replace-link", "micro-batches"];

function inPlace(actions: readonly IncidentAction[]): readonly IncidentAction[] {
  const place = ({ do: what }: IncidentAction): number =>
    FIRST.includes(what) ? FIRST.indexOf(what) : FIRST.length;
  const key = ({ do: what, target, id }: IncidentAction): string => `${what}\n${target}\n${id}`;
  return actions
    .toSorted((a, b) => place(a) - place(b) || (key(a) < key(b) ? -1 : 1))
    .slice(0, MOST_ACTIONS);
}

function CommandLine({
  command,
  onCopy,
}: {
  readonly command: string | undefined;
  readonly onCopy?: ((command: string) => void) | undefined;
}): VNode | null {
  return command === undefined ? null : (
    <p class="fl-p">
      <Command command={cutText(command, MOST_WHY)} onCopy={onCopy} />
    </p>
  );
}

/** The first thing to do, with the command that does it. */
export function FirstStep({
  action,
  label = "Do first",
  onCopy,
}: {
  readonly action: Action;
  /** Beside something that can be approved it is how to make sure. */
  readonly label?: string;
  readonly onCopy?: ((command: string) => void) | undefined;
}): VNode {
  return (
    <div class="fl-do">
      <p class="fl-line">
        <b class="fl-do-first">{label}:</b>
        <b>{cutText(actionTitle(action), MOST_TARGET)}</b>
        <span class="fl-target">{cutText(action.target, MOST_TARGET)}</span>
      </p>
      <p class="fl-p">
        <Advice text={capital(cutText(action.why, MOST_WHY))} onCopy={onCopy} />
      </p>
      <CommandLine command={action.command} onCopy={onCopy} />
    </div>
  );
}

/** Where nobody is named: what would tell. */
export function FindOut({
  wouldHelp,
  onCopy,
}: {
  readonly wouldHelp: readonly string[];
  readonly onCopy?: ((command: string) => void) | undefined;
}): VNode {
  return (
    <div class="fl-do">
      <p class="fl-line">
        <b class="fl-do-first">To find out more:</b>
      </p>
      {wouldHelp.slice(0, MOST_HELP).map((text) => (
        <p class="fl-p">
          <Advice text={capital(cutText(text, MOST_WHY))} onCopy={onCopy} />
        </p>
      ))}
    </div>
  );
}

function Expected({
  action,
  verdict,
}: {
  readonly action: { readonly do: string; readonly target: string };
  readonly verdict: Planned | undefined;
}): VNode | null {
  const gain = verdict ? gainOf(action, verdict) : null;
  if (gain === null) return null;
  return (
    <p class="fl-p fl-gain">
      <b>Expected:</b> {gainWords(gain)}
    </p>
  );
}
