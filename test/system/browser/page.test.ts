/** The page in a real browser, on a service made by hand: every page in both themes, keyboard, hostile words, lost lines. */
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Incident } from "../../../src/model/incident.ts";
import type { IncidentPicture } from "../../../src/model/picture.ts";
import type { IterationRows } from "../../../src/history/history.ts";
import type { ServiceView } from "../../../src/live/service/view.ts";
import { HANG_PICTURE, SLOW_PICTURE } from "../../support/report/picture.ts";
import { INCIDENT } from "../../support/serve-view.ts";
import { problemsOf, tabThrough } from "./accessibility.ts";
import { PATIENCE_MS, startChromium, whyNoChromium } from "./chromium.ts";
import { servePage, type PageJob, type PageService, type PageServiceOptions } from "./page-view.ts";
import { few } from "../../support/cases.ts";

const SCREENSHOTS = fileURLToPath(new URL("../../../out/screenshots/", import.meta.url));
const THEMES = ["light", "dark"] as const;
const now = Date.now();

const SLOW: Incident = {
  ...INCIDENT,
  id: "llama.a1.fail-slow.i800",
  job: "llama",
  summary:
    "Rank 3 on node000 computes slowly, and that slows the job down; the other 63 only wait.",
  verdict: {
    ...INCIDENT.verdict!,
    summary:
      "Rank 3 on node000 computes slowly, and that slows the job down; the other 63 only wait.",
  },
  state: "confirmed",
  onsetMs: now - 190_000,
  openedMs: now - 180_000,
  changedMs: now - 175_000,
  resolvedMs: null,
  wastedGpuMs: 64 * 120_000,
};
const HUNG: Incident = {
  ...SLOW,
  id: "moe.b7.hang.i90",
  job: "moe-pretrain",
  kind: "hang",
  summary: "Rank 3 on node000 stopped issuing work: its CPU is stuck, and that hangs the job.",
  verdict: {
    ...SLOW.verdict!,
    kind: "hang",
    summary: "Rank 3 on node000 stopped issuing work: its CPU is stuck, and that hangs the job.",
  },
};
const OVER: Incident = {
  ...SLOW,
  id: "llama.a1.fail-slow.i200",
  state: "resolved",
  resolvedMs: now,
};
const JOBS: readonly PageJob[] = [
  { job: "llama", shape: [4, 4, 4], slow: 3 },
  { job: "moe-pretrain", shape: [8, 2, 16] },
];
const PICTURES = new Map<string, IncidentPicture>([
  [SLOW.id, SLOW_PICTURE],
  [HUNG.id, HANG_PICTURE],
]);

describe.skipIf(whyNoChromium !== "")(`the page${whyNoChromium}`, () => {
  let browser: Browser;
  /** One service, and a page for each size of screen, for all tests that change neither. */
  let shared: PageService;
  const pages = new Map<string, Page>();
  const ends: (() => Promise<unknown>)[] = [];
  const stops: (() => Promise<unknown>)[] = [];
  /** What must never happen on any page. */
  const accidents: string[] = [];
  beforeAll(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    browser = await startChromium();
    shared = await serve();
    ends.push(...stops.splice(0));
  });
  afterAll(async () => {
    await browser.close();
    for (const end of ends) await end();
  });
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    expect(accidents.splice(0)).toEqual([]);
  });

  async function serve(options: Partial<PageServiceOptions> = {}): Promise<PageService> {
    const service = await servePage({
      jobs: JOBS,
      incidents: [SLOW, HUNG, OVER],
      pictures: PICTURES,
      ...options,
    });
    const ticking = setInterval(() => service.tick(), 1000);
    stops.push(async () => {
      clearInterval(ticking);
      await service.close();
    });
    return service;
  }

  async function open(
    url: string,
    how: Parameters<Browser["newContext"]>[0] & { mayFail?: boolean } = {},
  ): Promise<Page> {
    const { mayFail = false, ...rest } = how;
    const context: BrowserContext = await browser.newContext({
      viewport: { width: 1440, height: 900 },
      ...rest,
    });
    stops.push(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const origin = new URL(url).origin;
    page.on("request", (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith("data:"))
        accidents.push(`asks ${request.url()}`);
    });
    page.on("pageerror", (error) => accidents.push(`throws ${error.stack ?? error.message}`));
    page.on("dialog", (dialog) => {
      accidents.push(`opens a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("console", (message) => {
      if (message.type() !== "error") return;
      // What the browser itself says of a service that is away, or of an answer 404.
      if (mayFail && /Failed to load resource|ERR_/.test(message.text())) return;
      accidents.push(`says ${message.text()}`);
    });
    await page.goto(url);
    return page;
  }

  /** A place of the shared service, on a page that is loaded once. */
  async function at(
    hash: string,
    how: { colorScheme?: (typeof THEMES)[number]; width?: number; height?: number } = {},
  ): Promise<Page> {
    const { colorScheme = "light", width = 1440, height = 900 } = how;
    let page = pages.get(`${width}`);
    if (!page) {
      const viewport = { width, height };
      page = await open(`${shared.url}/`, { viewport, hasTouch: width < 500, mayFail: true });
      // The context stays.
      stops.pop();
      pages.set(`${width}`, page);
    }
    await page.emulateMedia({ colorScheme });
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}; scrollTo(0, 0)`);
    return page;
  }

  /** Until all is there and nothing moves. */
  async function settled(page: Page): Promise<void> {
    // Not by waitForFunction: what it does again and again, the page's Content Security Policy forbids.
    const isThere = `document.querySelector("main :is(h1, h2, p)") !== null && document.querySelector(".loading") === null &&
      document.getAnimations().every(({ playState, effect }) => playState !== "running" || effect?.getTiming().iterations === Infinity)`;
    await expect
      .poll(() => page.evaluate<boolean>(isThere), { timeout: PATIENCE_MS, interval: 50 })
      .toBe(true);
    await page.evaluate(
      `document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0)))))`,
    );
  }

  const has = (page: Page, words: string | RegExp): Promise<void> =>
    page.getByText(words).first().waitFor({ timeout: PATIENCE_MS });

  describe.each(THEMES)("in the %s theme", (colorScheme) => {
    const look = async (name: string, page: Page, fullPage = true): Promise<void> => {
      await settled(page);
      await page.screenshot({ path: `${SCREENSHOTS}${name}-${colorScheme}.png`, fullPage });
      expect(await problemsOf(page)).toEqual([]);
    };

    it("shows the fleet: what is open, every job, who offends repeatedly", async () => {
      const page = await at("#/", { colorScheme });
      await has(page, "Rank 3 on node000 computes slowly");
      await has(page, "moe-pretrain");
      await has(page, "node0");
      await look("fleet", page);
      const { stops: count, problems } = await tabThrough(page);
      expect(problems).toEqual([]);
      expect(count).toBeGreaterThan(8);
    });

    it("shows a job: its iterations, its ranks, what was lost", async () => {
      const page = await at("#/jobs/llama", { colorScheme });
      await page.waitForSelector("canvas");
      await has(page, /Rank 3 on node000 computes slowly/);
      await has(page, /GPU-h/);
      await look("job", page);
      expect((await tabThrough(page)).problems).toEqual([]);
    });

    it("shows an incident: who, why, how it spread, what to do", async () => {
      const page = await at(`#/incidents/${SLOW.id}`, { colorScheme });
      await page.getByText("Show me the proof").click();
      await has(page, "its own time doubled");
      await has(page, SLOW_PICTURE.story!.ends);
      for (const hop of SLOW_PICTURE.story!.hops) await has(page, hop.says);
      await look("incident-slow", page);
      expect((await tabThrough(page)).problems).toEqual([]);
    });

    it("shows a hang with those who never arrived", async () => {
      const page = await at(`#/incidents/${HUNG.id}`, { colorScheme });
      await page.getByText("Show me the proof").click();
      await has(page, HANG_PICTURE.story!.ends);
      await look("incident-hang", page);
    });

    it("is there where nothing is", async () => {
      const { url } = await serve({
        jobs: [],
        incidents: [],
        changed: { offenders: async () => [] },
      });
      const page = await open(`${url}/`, { colorScheme });
      await has(page, /faultline agent/);
      await look("empty", page);
    });

    it("says so where there is no such job, incident or page", async () => {
      for (const hash of ["#/jobs/none", "#/incidents/none", "#/nowhere"]) {
        const page = await at(hash, { colorScheme });
        await has(page, /no such|no page|does not know a job/i);
        await look(`missing-${hash.split("/")[1]}`, page);
      }
    });

    const SCREENS = [
      [390, 844],
      [1440, 900],
      [2560, 1440],
    ] as const;
    it.each(few(SCREENS, 2))(
      "fits a screen %i px wide, with Approve in the first 700 px",
      async (width, height) => {
        for (const [where, hash] of [
          ["fleet", "#/"],
          ["job", "#/jobs/llama"],
          ["history", "#/history/node000"],
          ["incident", `#/incidents/${SLOW.id}`],
        ] as const) {
          const page = await at(hash, { colorScheme, width, height });
          await page
            .locator("main")
            .getByText(/Rank 3 on node000 computes slowly/)
            .first()
            .waitFor();
          await look(`${where}-${width}`, page, width < 500);
          if (where !== "incident") continue;
          const approve = page.getByRole("button", { name: /^Approve/ }).first();
          const { y, height: tall } = (await approve.boundingBox())!;
          expect(y + tall).toBeLessThan(700);
        }
      },
    );

    it("fills a wide screen: cards and drawings end near its right edge", async () => {
      const page = await at("#/", { colorScheme, width: 2560, height: 1440 });
      await has(page, /Rank 3 on node000 computes slowly/);
      const cards = page.locator(".open-card");
      const boxes = await Promise.all((await cards.all()).map((card) => card.boundingBox()));
      const right = Math.max(...boxes.map((box) => box!.x + box!.width));
      expect(right).toBeGreaterThan(0.85 * 2560);
      expect(boxes[0]!.y).toBe(boxes[1]!.y);
    });
  });

  it("shows the rank that a finger taps", async () => {
    const { url } = await serve();
    const page = await open(`${url}/#/jobs/llama`, {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    });
    await page.waitForSelector(".grid-host canvas");
    const grid = page.locator(".grid-host");
    await grid.scrollIntoViewIfNeeded();
    const { width, height } = (await grid.boundingBox())!;
    for (const share of [0.3, 0.5, 0.6, 0.4, 0.2]) {
      await grid.tap({ position: { x: width * share, y: height * share } });
      if ((await page.locator(".cell-detail").innerText()).match(/rank \d+/i)) break;
    }
    expect(await page.locator(".cell-detail").innerText()).toMatch(/rank \d+/i);
  });

  it("draws a slow link where its machines meet", async () => {
    const link: Incident = {
      ...SLOW,
      verdict: {
        ...SLOW.verdict!,
        suspects: [
          {
            ...SLOW.verdict!.suspects[0]!,
            type: "link",
            ranks: [3, 42],
            machine: null,
            link: ["3", "42"],
            cause: "network-slow",
          },
        ],
      },
    };
    const { url } = await serve({ incidents: [link] });
    const page = await open(`${url}/#/jobs/llama`);
    await page.getByRole("img", { name: /^Slow: / }).waitFor();
    expect(await page.locator(".network-link").count()).toBe(2);
    expect(await problemsOf(page)).toEqual([]);
  });

  it("fetches the part of a long run that one zooms into, shows a range, and lays an earlier run over it", async () => {
    const asked: Parameters<ServiceView["iterations"]>[1][] = [];
    const thinnedOut = async (_: string, query: (typeof asked)[number]): Promise<IterationRows> => {
      asked.push(query);
      const every = query.fromMs === undefined && query.run === undefined ? 10 : 1;
      const iteration = Float64Array.from({ length: 600 }, (_, k) => every * k);
      return {
        iteration,
        endMs: iteration.map((number) => now - (6000 - number) * 1000),
        durationMs: iteration.map(() => 500),
      };
    };
    const before: Incident = { ...OVER, id: "llama.a0.fail-slow.i9", run: "a0" };
    const changed = { iterations: thinnedOut };
    const { url } = await serve({ incidents: [SLOW, before], changed });
    const page = await open(`${url}/#/jobs/llama`);
    const chart = page.locator(".chart-host .u-over");
    await chart.waitFor();
    await page.getByLabel("Time range").selectOption("Last hour");
    const { x, y, width } = (await chart.boundingBox())!;
    await page.mouse.move(x + 0.2 * width, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + 0.4 * width, y + 40, { steps: 4 });
    await page.mouse.up();
    await expect
      .poll(() => asked.some(({ fromMs, toMs }) => fromMs! > 0 && toMs! > fromMs!))
      .toBe(true);
    await page.getByRole("button", { name: "Compare with run a0" }).click();
    await has(page, /Dashed: the same iterations in run a0, half of them in less than 500 ms/);
    expect(asked.some(({ run }) => run === "a0")).toBe(true);
    expect(await problemsOf(page)).toEqual([]);
  });

  it("zooms a trace in place, by buttons, keys and dragging", async () => {
    const page = await at(`#/incidents/${SLOW.id}`);
    await page.getByText("Show me the proof").click();
    const frame = page.getByRole("group", { name: /^Trace\. Plus and minus zoom/ });
    await frame.locator("svg").waitFor();
    const shown = async (): Promise<string> =>
      (await frame.locator("svg").innerHTML()).slice(0, 900);
    const whole = await shown();
    await page.getByRole("button", { name: "Show less of the trace" }).click();
    await has(page, /[\d.]+ of [\d.]+ ms; drag to move/);
    const half = await shown();
    expect(half).not.toBe(whole);
    const { x, y, width } = (await frame.locator("svg").boundingBox())!;
    await page.mouse.move(x + 0.6 * width, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + 0.4 * width, y + 40, { steps: 4 });
    await page.mouse.up();
    const moved = await shown();
    expect(moved).not.toBe(half);
    await frame.focus();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(shown).not.toBe(moved);
    await page.screenshot({ path: `${SCREENSHOTS}trace-zoomed.png`, fullPage: true });
    await page.keyboard.press("0");
    await expect.poll(shown).toBe(whole);
    expect(await problemsOf(page)).toEqual([]);
  });

  it("finds incidents by words, by keys alone", async () => {
    const page = await at("#/");
    await has(page, "Rank 3 on node000 computes slowly");
    await page.keyboard.press("g");
    await page.keyboard.press("h");
    await has(page, /3 of 3 incidents/);
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("moe hang");
    await page.keyboard.press("Enter");
    await has(page, /1 of 3 incidents/);
    await has(page, /Lost by day/);
    expect(new URL(page.url()).hash).toBe("#/history/moe%20hang");
  });

  it("lays 10,000 ranks out", async () => {
    const { url } = await serve({ jobs: [{ job: "llama", shape: [8, 10, 125], slow: 4321 }] });
    const page = await open(`${url}/#/jobs/llama`);
    await page.waitForSelector("canvas");
    await has(page, /10,000/);
    await settled(page);
    await page.screenshot({ path: `${SCREENSHOTS}job-10000.png`, fullPage: true });
  });

  it("comes back by itself after the service was away", async () => {
    const first = await servePage({ jobs: JOBS, incidents: [SLOW], pictures: PICTURES });
    const port = Number(new URL(first.url).port);
    const page = await open(`${first.url}/`, { mayFail: true });
    await has(page, "Rank 3 on node000 computes slowly");
    await first.close();
    await has(page, /reconnect|lost|cannot be reached/i);
    // What was known stays on the screen.
    await has(page, "Rank 3 on node000 computes slowly");
    await page.screenshot({ path: `${SCREENSHOTS}disconnected.png` });
    expect(await problemsOf(page)).toEqual([]);
    const again = { ...HUNG, summary: "Another one, opened meanwhile." };
    await serve({ port, incidents: [again] });
    await has(page, "Another one, opened meanwhile.");
    const old = page.locator("main").getByText("Rank 3 on node000 computes slowly");
    expect(await old.count()).toBe(0);
  });

  describe("words of strangers", () => {
    const SCRIPT = `<script>alert(1)</script><img src=x onerror=alert(2)>`;
    const BIDI = "\u202Eevil\u2066\u200F";
    const LONG = "A".repeat(1 << 20);

    const WORDS = [
      ["with markup", SCRIPT],
      ["that turn the reading direction", `safe${BIDI}txt`],
      ["a megabyte long", LONG],
    ] as const;
    it.each(few(WORDS, 2))("%s stay text", async (_, words) => {
      const hostile: Incident = {
        ...SLOW,
        job: words,
        summary: `${words} is slow`,
        machines: [words],
        verdict: {
          ...SLOW.verdict!,
          summary: `${words} is slow`,
          suspects: SLOW.verdict!.suspects.map((one) => ({ ...one, machine: words, why: words })),
          findings: [
            {
              id: "f1",
              method: "hang/stacks",
              says: words,
              weight: 1,
              at: [{ file: words }],
              data: { fact: "stopped-rank", side: "cpu", last: words },
            },
          ],
        },
        actions: SLOW.actions.map((one) => ({ ...one, target: words, why: words })),
      };
      const line = { line: 7, text: words, isKey: true, timeMs: now, count: 1 };
      const picture: IncidentPicture = {
        ...SLOW_PICTURE,
        logs: [{ file: words, rank: 3, node: words, lines: [line] }],
        story: {
          ...SLOW_PICTURE.story!,
          ends: words,
          hops: SLOW_PICTURE.story!.hops.map((hop) => ({
            ...hop,
            title: words,
            says: words,
            bars: hop.bars.map((bar) => ({ ...bar, machine: words })),
          })),
        },
      };
      const { url } = await serve({
        jobs: [{ job: words, shape: [4, 4, 4], slow: 3, machine: () => words }],
        incidents: [hostile],
        pictures: new Map([[hostile.id, picture]]),
      });
      const page = await open(`${url}/`, { mayFail: true });
      for (const hash of [
        "#/",
        `#/incidents/${hostile.id}`,
        `#/jobs/${encodeURIComponent(words.slice(0, 2000))}`,
      ]) {
        await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
        await settled(page);
        const seen = await page.evaluate<{
          scripts: number;
          images: number;
          text: string;
          wide: boolean;
        }>(`({
          scripts: document.querySelectorAll("script").length,
          images: document.querySelectorAll("img, iframe, object").length,
          text: document.body.innerText.slice(0, 3_000_000),
          wide: document.documentElement.scrollWidth > innerWidth + 1,
        })`);
        expect(seen.scripts).toBe(1);
        expect(seen.images).toBe(0);
        expect(seen.wide).toBe(false);
        expect(seen.text.length).toBeLessThan(500_000);
        expect(seen.text).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/);
        if (words === SCRIPT && !hash.includes("jobs"))
          expect(seen.text).toContain("<script>alert(1)");
      }
    });
  });

  it("can be used by keys alone", async () => {
    const page = await at("#/");
    await has(page, "Rank 3 on node000 computes slowly");
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForFunction(`/#\\/(incidents|jobs)\\//.test(location.hash)`);
    await page.keyboard.press("g");
    await page.keyboard.press("f");
    await page.waitForFunction(`location.hash === "#/"`);
  });

  it("keeps the theme and the time zone that one chose", async () => {
    const { url } = await serve();
    const page = await open(`${url}/`, { colorScheme: "light", timezoneId: "Asia/Tokyo" });
    await has(page, "Rank 3 on node000 computes slowly");
    await page.keyboard.press("u");
    await has(page, /UTC/);
    for (let k = 0; k < 3; k++) {
      if ((await page.getAttribute("html", "data-theme")) === "dark") break;
      await page.keyboard.press("t");
    }
    expect(await page.getAttribute("html", "data-theme")).toBe("dark");
    await page.reload();
    await has(page, "Rank 3 on node000 computes slowly");
    expect(await page.getAttribute("html", "data-theme")).toBe("dark");
  });
});
