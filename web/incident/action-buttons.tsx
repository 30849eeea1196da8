/**
 * Approve, try, dismiss or undo an action. Before anything is run the service is asked what exactly that would be, and
 * the viewer sees it.
 */
import type { RefObject, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { IncidentAction } from "../../src/model/incident.ts";
import { AskError, type Incident, paths, send } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { session } from "../live/session.ts";
import { tokens } from "../live/token.ts";
import { useKeys } from "../shell/keys.ts";
import { Problem } from "../shell/states.tsx";
import { TokenForm } from "../shell/token-form.tsx";
import { actionTitle } from "../../src/report/action-words.ts";
import { planWords } from "../../src/report/outcome-words.ts";

type Verb = "approve" | "dismiss" | "undo";
type Doing =
  | { readonly at: "rest"; readonly says?: string }
  | { readonly at: "asking"; readonly says: string }
  | { readonly at: "confirm"; readonly verb: "approve" | "undo"; readonly plan: string }
  | { readonly at: "failed"; readonly error: unknown };

export function ActionButtons({
  incident,
  action,
  onChange,
}: {
  readonly incident: Incident;
  readonly action: IncidentAction;
  readonly onChange: (changed: Incident) => void;
}): VNode | null {
  const now = useObservable(session);
  const [doing, setDoing] = useState<Doing>({ at: "rest" });
  const approve = useRef<HTMLButtonElement>(null);
  const dryRun = useRef<HTMLButtonElement>(null);
  const dismiss = useRef<HTMLButtonElement>(null);
  const pressed = useRef<RefObject<HTMLButtonElement | null> | null>(null);
  // A button that is disabled or not shown for a while loses the focus: it gets it back.
  useLayoutEffect(() => {
    if (doing.at === "asking" || doing.at === "confirm") return;
    if (document.activeElement === document.body) pressed.current?.current?.focus();
    pressed.current = null;
  }, [doing.at]);
  useEffect(
    () =>
      tokens.watch(() => {
        // The form, which is about to go, is beside the buttons.
        if (dismiss.current?.parentElement?.contains(document.activeElement))
          pressed.current = approve.current ? approve : dismiss;
        setDoing((now) =>
          now.at === "failed"
            ? { at: "rest", says: "The token is in use now. Choose again what to do." }
            : now,
        );
      }),
    [],
  );
  const tell = async (verb: Verb, dryRun: boolean): Promise<IncidentAction | null> => {
    const does = { approve: "Running", dismiss: "Dismissing", undo: "Undoing" }[verb];
    const says = dryRun ? "Asking what it would do" : does;
    setDoing({ at: "asking", says });
    try {
      const path = paths.action(incident.id, action.id);
      const changed = await send<Incident>(path, { verb, dryRun });
      onChange(changed);
      setDoing({ at: "rest" });
      return changed.actions.find(({ id }) => id === action.id) ?? null;
    } catch (error) {
      setDoing({ at: "failed", error });
      return null;
    }
  };
  const prepare = async (verb: "approve" | "undo"): Promise<void> => {
    pressed.current = approve;
    const tried = await tell(verb, true);
    if (!tried) return;
    pressed.current = approve;
    setDoing({ at: "confirm", verb, plan: tried.would ?? tried.outcome });
  };

  const canUndo = action.canUndo === true && (action.state === "done" || action.state === "failed");
  if (now?.link || (!isOpen(action) && !canUndo)) return null;
  const isBusy = doing.at === "asking";
  return (
    <>
      {doing.at === "confirm" ? (
        <Confirm
          action={action}
          verb={doing.verb}
          plan={doing.plan}
          onRun={(event) => {
            pressed.current = null;
            focusHeading(event.currentTarget);
            void tell(doing.verb, false);
          }}
          onCancel={() => setDoing({ at: "rest" })}
        />
      ) : (
        <>
          {canUndo && (
            <button
              type="button"
              ref={action.state === "done" ? approve : null}
              disabled={isBusy}
              onClick={() => void prepare("undo")}
            >
              Undo …
            </button>
          )}
          {isOpen(action) && action.canRun && (
            <button
              type="button"
              class="button-primary"
              ref={approve}
              disabled={isBusy}
              onClick={() => void prepare("approve")}
            >
              Approve …
            </button>
          )}
          {isOpen(action) && action.canRun && (
            <button
              type="button"
              ref={dryRun}
              disabled={isBusy}
              onClick={() => {
                pressed.current = dryRun;
                void tell("approve", true);
              }}
            >
              Dry run
            </button>
          )}
          {isOpen(action) && (
            <button
              type="button"
              ref={dismiss}
              disabled={isBusy}
              onClick={(event) => {
                focusHeading(event.currentTarget);
                void tell("dismiss", false);
              }}
            >
              Dismiss
            </button>
          )}
          <span role="status">
            {doing.at === "asking" ? `${doing.says} …` : doing.at === "rest" ? doing.says : ""}
          </span>
        </>
      )}
      {doing.at === "failed" && (
        <Problem error={doing.error}>{isRefused(doing.error) && <TokenForm scope="act" />}</Problem>
      )}
    </>
  );
}

function Confirm({
  action,
  verb,
  plan,
  onRun,
  onCancel,
}: {
  readonly action: IncidentAction;
  readonly verb: "approve" | "undo";
  readonly plan: string;
  readonly onRun: (event: { readonly currentTarget: HTMLElement }) => void;
  readonly onCancel: () => void;
}): VNode {
  // Bound behind the page's own Escape, which would leave the page.
  useKeys([{ keys: "Escape", says: "", run: onCancel }]);
  return (
    <div class="confirm" role="group" aria-label="Confirm the action">
      <p>
        {verb === "undo" ? "Undo: " : ""}
        {actionTitle(action)} · <strong>{action.target.slice(0, 200)}</strong>? The service will:
      </p>
      <p class="plan">{planWords(plan).slice(0, 4000)}</p>
      <p class="line">
        <button type="button" class="button-primary" onClick={onRun}>
          Yes, do it
        </button>
        <button type="button" ref={focus} onClick={onCancel}>
          Cancel
        </button>
      </p>
    </div>
  );
}

/** The harmless one has the focus: a second press of Enter must not run anything. */
function focus(button: HTMLButtonElement | null): void {
  button?.focus({ preventScroll: true });
  button?.closest(".confirm")?.scrollIntoView({ block: "nearest" });
}

/** The buttons go away; what becomes of the action stands in its first line. */
function focusHeading(button: HTMLElement): void {
  const heading = button.closest("li")?.querySelector("p");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

function isOpen({ state }: IncidentAction): boolean {
  return ["proposed", "dry-run", "failed", "undone"].includes(state);
}

function isRefused(error: unknown): boolean {
  return error instanceof AskError && (error.status === 401 || error.status === 403);
}
