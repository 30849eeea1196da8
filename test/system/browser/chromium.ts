/** A real browser for tests: Debian's Chromium, without a window. */
import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";
import { unlessThere } from "../../support/lacking.ts";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => existsSync(path),
);

/** For a test's title; "" where there is one. */
export const whyNoChromium = unlessThere(CHROMIUM !== undefined, "Chromium", "chromium");

/** Of one step on a page: a busy machine takes long, and only what never comes is wrong. */
export const PATIENCE_MS = 90_000;

/** `--disable-dev-shm-usage`: containers have little of it. */
export async function startChromium(words: readonly string[] = []): Promise<Browser> {
  return await chromium.launch({
    executablePath: CHROMIUM!,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", ...words],
  });
}
