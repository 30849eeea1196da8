/** One request of the viewer's at a time: whether it is on its way, and why it failed. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { AskError, send as sendTo } from "../live/api.ts";
import { Problem } from "./states.tsx";
import { TokenForm } from "./token-form.tsx";

/** `onDone` gets what the service answered, as its schema says. */
export function useSend(onDone: (answer: unknown) => void): {
  readonly isBusy: boolean;
  readonly error: unknown;
  /** Resolves to whether it was done. */
  readonly send: (path: string, body: object) => Promise<boolean>;
} {
  const [error, fail] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (path: string, body: object): Promise<boolean> => {
    setBusy(true);
    fail(null);
    try {
      onDone(await sendTo<unknown>(path, body));
      return true;
    } catch (reason) {
      fail(reason);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, error, send };
}

/** Why it failed; with a field for a token where one is missing. */
export function Sent({ error }: { readonly error: unknown }): VNode | null {
  if (error === null) return null;
  const isRefused = error instanceof AskError && (error.status === 401 || error.status === 403);
  return <Problem error={error}>{isRefused && <TokenForm scope="act" />}</Problem>;
}
