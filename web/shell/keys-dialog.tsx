/** All keys that do something where one is. */
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { allKeys } from "./keys.ts";

const NAMES: Readonly<Record<string, string>> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  " ": "Space",
};

export function KeysDialog({ onClose }: { readonly onClose: () => void }): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const bySays = new Map<string, string[]>();
  for (const { keys, says } of allKeys()) {
    const same = bySays.get(says) ?? [];
    if (!same.includes(keys)) bySays.set(says, [...same, keys]);
  }
  bySays.set("open the selected item", ["Enter"]);
  return (
    <dialog class="dialog" ref={dialog} onClose={onClose} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        {[...bySays].map(([says, all]) => (
          <div key={says}>
            <dt>
              {all.map((keys, i) => (
                <span key={keys}>
                  {i > 0 && <span class="soft"> or </span>}
                  {keys.split(/(?<=\S) /).map((key) => (
                    <kbd key={key}>{NAMES[key] ?? key}</kbd>
                  ))}
                </span>
              ))}
            </dt>
            <dd>{says}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
