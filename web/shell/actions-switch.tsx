/** The switch for all actions: a button that stops them, and on every page a bar while they are off. */
import type { VNode } from "preact";
import { paths, type SwitchState } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { actionsSwitch } from "../live/store.ts";
import { Sent, useSend } from "./sending.tsx";
import { asSentence } from "./states.tsx";

/** Nothing where no hook and no driver is configured, and where they are off already. */
export function StopActions(): VNode | null {
  const now = useObservable(actionsSwitch);
  const { error, isBusy, turn } = useSwitch();
  if (!now?.canRun || !now.isOn) return null;
  return (
    <>
      <button
        type="button"
        class="button-quiet stop-actions"
        disabled={isBusy}
        title="Nothing is run any more, for any job, until somebody allows it again"
        onClick={() => void turn(false)}
      >
        Stop all actions
      </button>
      <Sent error={error} />
    </>
  );
}

export function ActionsBar(): VNode | null {
  const now = useObservable(actionsSwitch);
  const { error, isBusy, turn } = useSwitch();
  if (!now || now.isOn) return null;
  return (
    <div class="line-bar" role="status">
      <strong>Actions are off</strong>
      <span>{asSentence(now.says)} Nothing is run, whatever anybody approves.</span>
      <button type="button" disabled={isBusy} onClick={() => void turn(true)}>
        Allow actions again
      </button>
      <Sent error={error} />
    </div>
  );
}

function useSwitch() {
  const { error, isBusy, send } = useSend((state) => actionsSwitch.set(state as SwitchState));
  return { error, isBusy, turn: (isOn: boolean) => send(paths.actionsSwitch(isOn), {}) };
}
