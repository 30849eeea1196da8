/** The demonstration as a visitor sees it: break something on the page, and the page names it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { DemoState } from "../../../src/live/service/view.ts";
import { problemsOf } from "./accessibility.ts";
import { PATIENCE_MS, startChromium, whyNoChromium } from "./chromium.ts";
import { freePort } from "../../support/free-port.ts";
import { few, longTest } from "../../support/cases.ts";

const FAULTLINE = fileURLToPath(new URL("../../../faultline", import.meta.url));
const SCREENSHOTS = fileURLToPath(new URL("../../../out/screenshots/", import.meta.url));
/** Far more than it takes (`faultline demo` says on its page how long it was): a busy machine must not fail. */
const NAMED_WITHIN_MS = 120_000;
const READY_WITHIN_MS = 180_000;

describe.skipIf(whyNoChromium !== "")(`the demonstration${whyNoChromium}`, () => {
  let child: ChildProcess;
  let url: string;
  let browser: Browser;
  let page: Page;
  const accidents: string[] = [];
  const said: string[] = [];

  beforeAll(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    const port = await freePort();
    child = spawn(FAULTLINE, ["demo", "--port", String(port), "--no-open", "--verbose"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    createInterface({ input: child.stderr! }).on("line", (line) => said.push(line));
    const lines = createInterface({ input: child.stdout! });
    const [first] = (await once(lines, "line")) as [string];
    url = first;
    browser = await startChromium();
    page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => accidents.push(error.message));
    page.on("console", (message) => {
      // What the page still offered, the service refused (409), or no longer has (404).
      const { url: of } = message.location();
      const isLate =
        /status of 409/.test(message.text()) ||
        (/status of 404/.test(message.text()) && /\/api\/v1\/incidents\//.test(of));
      if (message.type() === "error" && !isLate) accidents.push(`${message.text()} ${of}`);
    });
    await page.goto(url);
  }, READY_WITHIN_MS);
  afterAll(async () => {
    await browser.close();
    const ended = once(child, "exit");
    child.kill("SIGINT");
    expect(await ended).toEqual([0, null]);
  });

  /** An attempt that failed leaves faults, and incidents of a job that nobody mended. */
  beforeEach(async ({ task }) => {
    if (!task.result?.retryCount) return;
    const headers = { "content-type": "application/json" };
    const { status } = await fetch(`${url}/api/v1/demo/restart`, {
      method: "POST",
      headers,
      body: "{}",
    });
    expect(status).toBe(200);
    await page.reload();
  });

  /** What the service thought, where it did not do what was waited for. */
  afterEach(async ({ task }) => {
    if (task.result?.state !== "fail") return;
    console.error(said.slice(-60).join("\n"));
    for (const path of ["demo", "jobs", "incidents"])
      console.error(path, (await (await fetch(`${url}/api/v1/${path}`)).text()).slice(0, 6000));
  });

  const state = async (): Promise<DemoState> =>
    (await (await fetch(`${url}/api/v1/demo`)).json()) as DemoState;
  const ready = (): Promise<unknown> =>
    page
      .locator("[data-break=gpu]:not([aria-disabled=true])")
      .waitFor({ timeout: READY_WITHIN_MS });

  /** Clicks until it is broken: the service may refuse what the page still offered. */
  const breakIt = async (
    kind: string,
  ): Promise<{ fault: DemoState["faults"][number]; clickedMs: number }> => {
    for (;;) {
      await ready();
      const clickedMs = Date.now();
      await page.locator(`[data-break=${kind}]`).click();
      const answered = page.locator(".demo-why:not([data-asking])");
      await answered.waitFor({ timeout: READY_WITHIN_MS });
      const fault = (await state()).faults.find((one) => one.kind === kind);
      if (fault) return { fault, clickedMs };
    }
  };

  it("greets a newcomer, and its panel is in order", async () => {
    await page.getByRole("complementary", { name: /Demonstration/ }).waitFor();
    await ready();
    await page.screenshot({ path: `${SCREENSHOTS}demo-fleet.png` });
    expect(await problemsOf(page)).toEqual([]);
  });

  const KINDS = [
    ["link", /link|network/i],
    ["gpu", "GPU computes slower"],
    ["data-loader", /data loader/i],
  ] as const;
  it.each(few(KINDS, 1))(
    "names the broken %s",
    { timeout: READY_WITHIN_MS + 2 * NAMED_WITHIN_MS },
    async (kind, cause) => {
      await page.goto(`${url}/#/`);
      const { fault, clickedMs } = await breakIt(kind);
      const result = page.locator(".demo-result", { hasText: fault.says.slice(1, 40) });
      await result.getByText(/✓ found in/).waitFor({ timeout: NAMED_WITHIN_MS });
      const seconds = (Date.now() - clickedMs) / 1000;
      await page
        .locator("main")
        .getByText(/rank|link|node/i)
        .first()
        .waitFor();
      // The incident itself names who it is.
      await page.getByRole("complementary").getByRole("link").first().click();
      await page.waitForFunction(`location.hash.startsWith("#/incidents/")`);
      const main = page.locator("main");
      await main.getByText("Show me the proof").click();
      await main.getByText(cause).first().waitFor();
      // A slow link between two machines slows all ranks that talk across it: any of them is right.
      const named = await main.locator(".fl-first h3").innerText();
      expect(fault.ranks.filter((rank) => new RegExp(`\\b${rank}\\b`).test(named))).not.toEqual([]);
      await page.waitForTimeout(2500);
      await page.screenshot({ path: `${SCREENSHOTS}demo-${kind}.png`, fullPage: true });
      console.log(`${kind}: named on the page after ${seconds.toFixed(1)} s`);
      await page.getByRole("button", { name: /^Fix/ }).click();
    },
  );

  longTest(
    "names a NIC that breaks while a GPU is slow, beside the GPU",
    { timeout: 2 * (READY_WITHIN_MS + NAMED_WITHIN_MS) },
    async () => {
      await page.goto(`${url}/#/`);
      for (const kind of ["gpu", "nic"]) {
        const { fault } = await breakIt(kind);
        const result = page.locator(".demo-result", { hasText: fault.says.slice(1, 40) });
        await result.getByText(/✓ found in/).waitFor({ timeout: NAMED_WITHIN_MS });
      }
      await page.getByRole("button", { name: /^Fix/ }).click();
    },
  );

  it(
    "mends what an approved action takes out",
    { timeout: READY_WITHIN_MS + 2 * NAMED_WITHIN_MS },
    async () => {
      await page.goto(`${url}/#/`);
      const { fault } = await breakIt("gpu");
      const result = page.locator(".demo-result", { hasText: fault.says.slice(1, 40) });
      await result.getByText(/✓ found in/).waitFor({ timeout: NAMED_WITHIN_MS });
      await page.getByRole("complementary").getByRole("link").first().click();
      await page
        .getByRole("button", { name: /^Approve/ })
        .first()
        .click();
      await page
        .getByRole("button", { name: /Approve|Run|Yes/ })
        .last()
        .click();
      await expect
        .poll(async () => (await state()).faults, { timeout: NAMED_WITHIN_MS, interval: 200 })
        .toEqual([]);
      await page
        .locator("main")
        .getByText(/^resolved/)
        .first()
        .waitFor({ timeout: 60_000 });
      expect(accidents).toEqual([]);
    },
  );
});
