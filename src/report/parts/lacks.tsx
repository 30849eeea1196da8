/** What could not be drawn, and why. */
import type { VNode } from "preact";
import { cutText } from "../../base/text.ts";

const MOST = 20;

export function Lacks({ lacks }: { readonly lacks: readonly string[] }): VNode | null {
  if (lacks.length === 0) return null;
  return (
    <div class="fl-lacks">
      <p class="fl-note">Not shown:</p>
      <ul>
        {lacks.slice(0, MOST).map((sentence) => (
          <li>{cutText(sentence, 600)}</li>
        ))}
      </ul>
    </div>
  );
}
