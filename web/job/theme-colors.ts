/** The theme's variables for what is drawn on a canvas; read again when the theme changes. */
import { observable } from "../live/observable.ts";

const NAMES = [
  "page",
  "panel",
  "line",
  "text",
  "soft",
  "link",
  "bad",
  "bad-soft",
  "warn",
  "warn-soft",
  "open",
  "open-soft",
  "wait",
  "wait-soft",
  "good",
] as const;
export type ThemeColors = Readonly<Record<(typeof NAMES)[number], string>>;

export const themeColors = observable<ThemeColors>(read());

function read(): ThemeColors {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim() || "#808080"]),
  ) as ThemeColors;
}

/** A sheet that is adopted later tells nobody, so whoever begins to draw reads anew. */
export function refreshThemeColors(): void {
  const now = read();
  if (NAMES.some((name) => now[name] !== themeColors.value[name])) themeColors.set(now);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refreshThemeColors);
new MutationObserver(refreshThemeColors).observe(document.documentElement, {
  attributeFilter: ["data-theme"],
});
