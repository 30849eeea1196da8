/** j and k, or the arrows, from row to row: whatever has `data-row` is one. Enter opens, for rows are links. */
import type { KeyBinding } from "./keys.ts";

export const LIST_KEYS: readonly KeyBinding[] = [
  { keys: "j", says: "next row", run: () => move(1, true) },
  { keys: "ArrowDown", says: "next row", run: () => move(1, false) },
  { keys: "k", says: "row before", run: () => move(-1, true) },
  { keys: "ArrowUp", says: "row before", run: () => move(-1, false) },
];

/** Arrows scroll the page as ever unless a row has the focus. */
function move(by: 1 | -1, fromAnywhere: boolean): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  const at = rows.findIndex((row) => row === document.activeElement);
  if (rows.length === 0 || (at < 0 && !fromAnywhere)) return false;
  const next = at < 0 ? (by === 1 ? 0 : rows.length - 1) : at + by;
  rows[Math.min(Math.max(0, next), rows.length - 1)]!.focus();
  return true;
}
