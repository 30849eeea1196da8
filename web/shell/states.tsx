/** What stands where something is not there: not yet, or not at all. */
import type { ComponentChildren, VNode } from "preact";
import { AskError } from "../live/api.ts";

export function Loading({ what }: { readonly what: string }): VNode {
  return (
    <p class="soft loading" role="status">
      Loading {what} …
    </p>
  );
}

/** One sentence why, and a way on. */
export function Problem({
  error,
  retry,
  children,
}: {
  readonly error: unknown;
  readonly retry?: (() => void) | undefined;
  readonly children?: ComponentChildren;
}): VNode {
  return (
    <div class="problem" role="alert">
      <p>{problemWords(error)}</p>
      {children}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ children }: { readonly children: ComponentChildren }): VNode {
  return <div class="empty">{children}</div>;
}

export function problemWords(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  const words = said === "" ? "something went wrong" : said;
  return asSentence(
    error instanceof AskError && error.status === 403 ? `not allowed: ${words}` : words,
  );
}

/** What the service says, with a capital and a full stop. */
export function asSentence(words: string): string {
  const short = words.slice(0, 500);
  const sentence = `${short.slice(0, 1).toUpperCase()}${short.slice(1)}`;
  return /[.?…]$/.test(sentence) ? sentence : `${sentence}.`;
}
