/** What automatic checks can tell of a page's accessibility: names, contrast, structure, and the way of the focus. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const CHECKS = readFileSync(new URL("in-page-checks.mjs", import.meta.url), "utf8").replace(
  /^\/\/.*\nexport default /,
  "",
);

/** A sentence for each problem. */
export async function problemsOf(page: Page): Promise<string[]> {
  return await page.evaluate<string[]>(`(${CHECKS.trim().replace(/;$/, "")})()`);
}

interface Stop {
  readonly what: string;
  readonly top: number;
  readonly left: number;
  readonly isShown: boolean;
  readonly hasMark: boolean;
  /** Whether it stands behind the one before it in the document. */
  readonly follows: boolean;
}

const STOP = `(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const before = globalThis.lastFocused;
  globalThis.lastFocused = element;
  const { top, left, width, height } = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  return {
    what: element.tagName.toLowerCase() + " " + (element.getAttribute("aria-label") ?? element.textContent ?? "").trim().slice(0, 40),
    top, left,
    isShown: width > 0 && height > 0 && top > -height && top < innerHeight && left < innerWidth,
    hasMark: style.outlineStyle !== "none" || style.boxShadow !== "none",
    follows: !before || Boolean(before.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING),
  };
})()`;

/** Goes through the page by Tab, from its beginning; problems, a sentence each, and how many stops there were. */
export async function tabThrough(
  page: Page,
  most = 60,
): Promise<{ readonly stops: number; readonly problems: readonly string[] }> {
  await page.evaluate(
    "globalThis.lastFocused = null; document.activeElement?.blur(); scrollTo(0, 0)",
  );
  const problems: string[] = [];
  let stops = 0;
  for (; stops < most; stops++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate<Stop | null>(STOP);
    // Behind the last one the focus leaves the page, or comes round.
    if (stop === null || (!stop.follows && stops > 0)) break;
    if (!stop.isShown) problems.push(`focus is on what cannot be seen: ${stop.what}`);
    if (!stop.hasMark) problems.push(`focus cannot be seen: ${stop.what}`);
  }
  return { stops, problems };
}
