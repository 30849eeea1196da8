/**
 * Where each entry of the browser's history was scrolled to: who goes back or forward, or loads the page again, finds it
 * as it was left. The browser's own way gives up where the content comes after the address has changed.
 */
const ENTRY = "faultlineEntry";
const STORE = "faultline-scroll";
/** Content comes by the service: as long as this the page may grow to where it was. */
const PATIENCE_MS = 1500;
const MOST_PLACES = 300;
/** Whoever does something wants to be where that leads. */
const INPUTS = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

/** By entry, and by address for those who come back by a link. */
const places = storedPlaces();

/** To be called once. */
export function takeOverScroll(): void {
  history.scrollRestoration = "manual";
  addEventListener("pagehide", () => {
    try {
      sessionStorage.setItem(STORE, JSON.stringify([...places]));
    } catch {
      // Storage may be full or forbidden: pages that are loaded again begin at their top then.
    }
  });
}

/**
 * Scrolls to where the current entry was left, once the page is high enough, and remembers on. `isUp`: a new entry, too,
 * goes where its address was left. Returns how to stop.
 */
export function keepScroll(isUp: boolean): () => void {
  const { entry, isNew } = currentEntry();
  const { hash } = location;
  const target = (isNew ? (isUp ? places.get(hash) : 0) : places.get(entry)) ?? 0;
  const untilMs = performance.now() + PATIENCE_MS;
  let isRestoring = true;
  let frame = 0;

  const remember = (): void => {
    if (isRestoring) return;
    for (const key of [entry, hash]) {
      places.delete(key);
      places.set(key, scrollY);
    }
    for (const key of places.keys()) {
      if (places.size <= MOST_PLACES) break;
      places.delete(key);
    }
  };
  const settle = (): void => {
    isRestoring = false;
    cancelAnimationFrame(frame);
    for (const input of INPUTS) removeEventListener(input, settle);
  };
  const restore = (): void => {
    scrollTo(0, target);
    if (Math.abs(scrollY - target) < 2 || performance.now() > untilMs) settle();
    else frame = requestAnimationFrame(restore);
  };
  addEventListener("scroll", remember, { passive: true });
  for (const input of INPUTS) addEventListener(input, settle, { passive: true });
  restore();
  return () => {
    settle();
    removeEventListener("scroll", remember);
  };
}

function currentEntry(): { readonly entry: string; readonly isNew: boolean } {
  const state = history.state as Record<string, unknown> | null;
  const known = state?.[ENTRY];
  if (typeof known === "string") return { entry: known, isNew: false };
  const entry = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  history.replaceState({ ...state, [ENTRY]: entry }, "");
  return { entry, isNew: true };
}

function storedPlaces(): Map<string, number> {
  try {
    const rows = JSON.parse(sessionStorage.getItem(STORE) ?? "[]") as [string, number][];
    return new Map(rows.filter(([, y]) => Number.isFinite(y)).slice(-MOST_PLACES));
  } catch {
    return new Map();
  }
}
