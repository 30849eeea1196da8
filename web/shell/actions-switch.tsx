/** The switch for all actions: a button that stops them, and on every page a bar while they are off. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { AskError, paths, send, type SwitchState } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { actionsSwitch } from "../live/store.ts";
import { asSentence, Problem } from "./states.tsx";
import { TokenForm } from "./token-form.tsx";

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
      {error !== null && <Trouble error={error} />}
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
      {error !== null && <Trouble error={error} />}
    </div>
  );
}

function useSwitch() {
  const [error, fail] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const turn = async (isOn: boolean): Promise<void> => {
    setBusy(true);
    fail(null);
    try {
      actionsSwitch.set(await send<SwitchState>(paths.actionsSwitch(isOn), {}));
    } catch (reason) {
      fail(reason);
    }
    setBusy(false);
  };
  return { error, isBusy, turn };
}

function Trouble({ error }: { readonly error: unknown }): VNode {
  const isRefused = error instanceof AskError && (error.status === 401 || error.status === 403);
  return <Problem error={error}>{isRefused && <TokenForm scope="act" />}</Problem>;
}
