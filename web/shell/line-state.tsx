/** Whether what is shown is what is: a word and a shape in the header, and a bar when it is not. */
import type { VNode } from "preact";
import { useObservable } from "../live/observable.ts";
import { session } from "../live/session.ts";
import { line } from "../live/store.ts";
import { asSentence } from "./states.tsx";
import { Since, Time } from "./time.tsx";
import { TokenForm } from "./token-form.tsx";
import { LinkBar } from "./who.tsx";

export function LineState(): VNode {
  const { state } = useObservable(line);
  const { link = null, canSignIn = false } = useObservable(session) ?? {};
  switch (state) {
    case "up":
      return (
        <span class="line-state tone-good">
          <Dot filled /> <span class="line-word">connected</span>
        </span>
      );
    case "connecting":
      return (
        <span class="line-state tone-wait">
          <Dot /> connecting
        </span>
      );
    case "lost":
      return (
        <span class="line-state tone-warn">
          <Dot /> reconnecting
        </span>
      );
    case "refused":
      return (
        <span class="line-state tone-bad">
          <Dot /> {link ? "read-only" : canSignIn ? "not signed in" : "token needed"}
        </span>
      );
  }
}

/** Says what is wrong and since when; takes no room while all is well. */
export function LineBar(): VNode | null {
  const now = useObservable(line);
  const { link = null, canSignIn = false } = useObservable(session) ?? {};
  if (now.state === "lost")
    return (
      <div class="line-bar" role="status">
        <strong>Not connected</strong>
        <span>
          since <Time ms={now.sinceMs} /> (<Since ms={now.sinceMs} />
          ): {now.why}. The page shows old values and reconnects by itself.
        </span>
      </div>
    );
  if (now.state === "connecting") return <Slow sinceMs={now.sinceMs} />;
  if (now.state === "refused" && link !== null) return <LinkBar />;
  if (now.state === "refused")
    return (
      <div class="line-bar" role="status">
        <strong>{canSignIn ? "Sign in to read" : "A token is needed"}</strong>
        <span>{asSentence(now.why)}</span>
        <TokenForm scope="read" />
      </div>
    );
  return null;
}

/** Appears after a while (line-bar-late): most connections take no time. */
function Slow({ sinceMs }: { readonly sinceMs: number }): VNode {
  return (
    <div class="line-bar line-bar-late" role="status">
      <strong>Connecting</strong>
      <span>
        since <Since ms={sinceMs} />. The service does not answer yet; the page keeps trying.
      </span>
    </div>
  );
}

function Dot({ filled = false }: { readonly filled?: boolean }): VNode {
  return (
    <svg class="shape" viewBox="0 0 16 16" aria-hidden="true">
      <circle
        cx="8"
        cy="8"
        r="5"
        fill={filled ? "currentColor" : "none"}
        stroke="currentColor"
        stroke-width="2"
      />
    </svg>
  );
}
