/** Who is signed in, and how to sign in and out. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useObservable } from "../live/observable.ts";
import { forgetTokens, personOf, session, signInAddress, signOut } from "../live/session.ts";
import { problemWords } from "./states.tsx";
import { Time } from "./time.tsx";

export function Who(): VNode | null {
  const now = useObservable(session);
  const [trouble, say] = useState("");
  const person = personOf(now);
  if (person === null) return now?.scopes.includes("read") ? <SignInLink /> : null;
  const end = async (): Promise<void> => {
    try {
      await signOut();
    } catch (error) {
      say(problemWords(error));
    }
  };
  return (
    <span class="who">
      <span class="cut" title={`Signed in as ${person}`}>
        {person}
      </span>
      <button type="button" class="button-quiet" onClick={() => void end()}>
        Sign out
      </button>
      {trouble !== "" && <span role="alert">{trouble}</span>}
    </span>
  );
}

/** Nothing where nobody can sign in, and for a person who has: more rights are the provider's to give. */
export function SignInLink(): VNode | null {
  const now = useObservable(session);
  if (!now?.canSignIn || personOf(now) !== null) return null;
  return (
    <a class="button" href={signInAddress()} onClick={forgetTokens}>
      Sign in
    </a>
  );
}

/** Instead of the line: a link opens one incident, and hears nothing of what changes. */
export function LinkBar(): VNode | null {
  const { link = null, canSignIn = false } = useObservable(session) ?? {};
  if (link === null) return null;
  return (
    <div class="line-bar" role="status">
      <strong>Read-only link</strong>
      <span>
        It opens this incident alone, until <Time ms={link.expiresMs} />. Reload to see changes.
      </span>
      <button type="button" onClick={forgetTokens}>
        {canSignIn ? "Sign in instead" : "Use a token instead"}
      </button>
    </div>
  );
}
