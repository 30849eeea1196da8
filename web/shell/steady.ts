/** Rows that keep their places while somebody reads or points at them. */
import { useEffect, useRef, useState } from "preact/hooks";

/** A pointer that was left lying about does not hold a wall's screen for ever. */
const MOST_HOLD_MS = 20_000;

/** What had a place keeps it; what is new comes behind; what is gone leaves. */
export function steadyOrder(
  before: readonly string[],
  wanted: readonly string[],
  isHeld: boolean,
): readonly string[] {
  if (!isHeld) return wanted;
  const there = new Set(wanted);
  const had = new Set(before);
  return [...before.filter((id) => there.has(id)), ...wanted.filter((id) => !had.has(id))];
}

export interface Steady {
  readonly order: readonly string[];
  /** For the element around the rows. */
  readonly hold: {
    onPointerMove(event: PointerEvent): void;
    onPointerLeave(): void;
    onFocusIn(): void;
    onFocusOut(): void;
  };
}

export function useSteady(wanted: readonly string[]): Steady {
  const shown = useRef<readonly string[]>(wanted);
  const [pointsUntilMs, setPoints] = useState(0);
  const [hasFocus, setFocus] = useState(false);
  const isHeld = hasFocus || pointsUntilMs > Date.now();
  shown.current = steadyOrder(shown.current, wanted, isHeld);
  useEffect(() => {
    if (pointsUntilMs === 0) return;
    const timer = setTimeout(() => setPoints(0), pointsUntilMs - Date.now());
    return () => clearTimeout(timer);
  }, [pointsUntilMs]);
  return {
    order: shown.current,
    hold: {
      onPointerMove: ({ pointerType }) => {
        // A finger points only while it touches. To the second: not drawn again with every move.
        if (pointerType === "mouse")
          setPoints(Math.ceil((Date.now() + MOST_HOLD_MS) / 1000) * 1000);
      },
      onPointerLeave: () => setPoints(0),
      onFocusIn: () => setFocus(true),
      onFocusOut: () => setFocus(false),
    },
  };
}
