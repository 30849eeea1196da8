/** Keys of the page: parts say which ones they know while they are shown; "?" lists them all. */
import { useEffect, useRef } from "preact/hooks";

export interface KeyBinding {
  /** "j", "?", "Escape", "ArrowDown", or two after each other: "g f". */
  readonly keys: string;
  /** For the list of keys, without a full stop: "open the fleet". "" leaves it out there. */
  readonly says: string;
  /** false: not for me now; the next one is asked. */
  run(event: KeyboardEvent): void | boolean;
}

const SECOND_KEY_MS = 1200;
const known = new Set<readonly KeyBinding[]>();
let first = { key: "", atMs: 0 };

/** Returns how to take them back. */
export function bindKeys(bindings: readonly KeyBinding[]): () => void {
  known.add(bindings);
  return () => known.delete(bindings);
}

/** Bound while the component is shown. The functions may change from drawing to drawing; the keys may not. */
export function useKeys(bindings: readonly KeyBinding[]): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  useEffect(
    () =>
      bindKeys(
        bindings.map((binding, i) => ({
          ...binding,
          run: (event) => latest.current[i]!.run(event),
        })),
      ),
    [],
  );
}

export function allKeys(): readonly KeyBinding[] {
  return [...known].flat().filter(({ says }) => says !== "");
}

export function listenForKeys(target: EventTarget): () => void {
  const listener = (event: Event): void => onKey(event as KeyboardEvent);
  target.addEventListener("keydown", listener);
  return () => target.removeEventListener("keydown", listener);
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const both = event.timeStamp - first.atMs < SECOND_KEY_MS ? `${first.key} ${event.key}` : "";
  first = { key: event.key, atMs: event.timeStamp };
  const all = [...known].reverse().flat();
  for (const wanted of both === "" ? [event.key] : [both, event.key]) {
    for (const binding of all) {
      if (binding.keys !== wanted || binding.run(event) === false) continue;
      event.preventDefault();
      first = { key: "", atMs: -Infinity };
      return;
    }
  }
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.closest("input, textarea, select, [contenteditable]") !== null
  );
}
