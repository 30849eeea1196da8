/** A read-only link to this incident, for people without access to the service; and the end of all such links. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { AskError, paths, send, type Incident } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { session } from "../live/session.ts";
import { copyText } from "../shell/copy.ts";
import { Problem } from "../shell/states.tsx";
import { Time } from "../shell/time.tsx";
import { TokenForm } from "../shell/token-form.tsx";

interface Shared {
  readonly path: string;
  readonly expiresMs: number;
}

export function ShareLink({ incident }: { readonly incident: Incident }): VNode | null {
  const now = useObservable(session);
  const [shared, setShared] = useState<(Shared & { readonly isCopied: boolean }) | null>(null);
  const [isRevoked, setRevoked] = useState(false);
  const [error, fail] = useState<unknown>(null);
  if (now?.link) return null;
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    fail(null);
    await work().catch(fail);
  };
  const share = (): Promise<void> =>
    attempt(async () => {
      const made = await send<Shared>(paths.links(incident.id), {});
      const isCopied = await copyText(location.origin + made.path);
      setRevoked(false);
      setShared({ ...made, isCopied });
    });
  const revoke = (): Promise<void> =>
    attempt(async () => {
      await send(paths.revokeLinks(incident.id), {});
      setShared(null);
      setRevoked(true);
    });
  const isRefused = error instanceof AskError && (error.status === 401 || error.status === 403);
  return (
    <div class="exports" role="group" aria-label="Read-only link">
      <button type="button" onClick={() => void share()}>
        Share read-only link
      </button>
      <span class="soft small" role="status">
        {shared && (
          <>
            {shared.isCopied ? "Link copied. " : "The browser does not allow copying. "}
            <a href={shared.path}>The link</a> shows this incident to anybody who has it, until{" "}
            <Time ms={shared.expiresMs} />.
          </>
        )}
        {isRevoked && "All read-only links to this incident are revoked."}
      </span>
      {shared && (
        <button type="button" class="button-quiet" onClick={() => void revoke()}>
          Revoke all
        </button>
      )}
      {error !== null && <Problem error={error}>{isRefused && <TokenForm scope="act" />}</Problem>}
    </div>
  );
}
