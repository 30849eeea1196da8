/** Light or dark, as the system prefers or as the viewer chose. */
import { kept, oneOf } from "./kept.ts";

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];
export const theme = kept<Theme>("theme", "system", oneOf("system", "light", "dark"));

/** Before the first paint, so that a dark room is not lit. */
export function followTheme(): void {
  const apply = (): void => {
    if (theme.value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
  };
  apply();
  theme.watch(apply);
}

export function nextTheme(): void {
  theme.set(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!);
}
