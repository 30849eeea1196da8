/** Where the culprit's Python stands: the whole stack of its main thread, innermost first. */
import type { VNode } from "preact";
import { count, cutText } from "../../base/text.ts";
import type { StackExcerpt } from "../../model/picture.ts";

const MOST_STACKS = 4;
const MOST_FRAMES = 64;
const MOST_TEXT = 400;

export function Stacks({ stacks }: { readonly stacks: readonly StackExcerpt[] }): VNode | null {
  if (stacks.length === 0) return null;
  return (
    <>
      {stacks.slice(0, MOST_STACKS).map(({ file, rank, status, frames, leftOut }) => (
        <article class="fl-log">
          <h3>
            Rank {rank} <code>{cutText(file, MOST_TEXT)}</code>
          </h3>
          {status !== "" && <p class="fl-note">main thread: {cutText(status, 40)}</p>}
          <ol tabIndex={0} aria-label={`Stack of rank ${rank}, innermost first`}>
            {frames.slice(0, MOST_FRAMES).map((frame, i) => (
              <li class={i === 0 ? "fl-key-line" : undefined}>
                <code class="fl-text">{cutText(frame, MOST_TEXT)}</code>
              </li>
            ))}
          </ol>
          {leftOut > 0 && <p class="fl-note">{count(leftOut, "outer frame")} left out.</p>}
        </article>
      ))}
    </>
  );
}
