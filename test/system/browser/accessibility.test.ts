import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { problemsOf, tabThrough } from "./accessibility.ts";
import { PATIENCE_MS, startChromium, whyNoChromium } from "./chromium.ts";

/** A check that finds nothing proves nothing: here are pages with one thing wrong each. */
describe.skipIf(whyNoChromium !== "")(`checks of accessibility${whyNoChromium}`, () => {
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    browser = await startChromium();
    page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
  });
  afterAll(() => browser.close());

  const show = (body: string): Promise<void> =>
    page.setContent(
      `<!doctype html><html lang="en"><title>x</title><style>body{background:#fff;color:#111}button{padding:8px;min-width:40px}</style><main><h1>One</h1>${body}</main>`,
    );

  it("find nothing on a page that is well made", async () => {
    await show(
      `<h2>Two</h2><a href="#x">more</a><label>Price <input></label><button>Go</button><svg role="img" aria-label="bars"></svg>`,
    );
    expect(await problemsOf(page)).toEqual([]);
    expect(await tabThrough(page)).toEqual({ stops: 3, problems: [] });
  });

  it.each([
    ["<button></button>", /has no name/],
    ["<input>", /has no name/],
    ["<canvas width=40 height=40></canvas>", /without a name/],
    ["<p style='color:#999'>pale</p>", /contrast 2\.8/],
    ["<p style='opacity:.4'>faint</p>", /contrast/],
    ["<svg width=90 height=20><text y=15 fill=#bbb>pale</text></svg>", /contrast/],
    ["<h3>Three</h3>", /h3 follows h1/],
    ["<h1>Two</h1>", /2 headings of the first level/],
    ["<p id=a>x</p><p id=a>y</p>", /2 elements are called a/],
    ["<p aria-labelledby=nobody>x</p>", /nobody, which is not there/],
    ["<a href=# tabindex=3>first</a>", /changes the order of focus/],
    [
      "<button style='width:9px;height:9px;min-width:0;padding:0' aria-label=x>x</button>",
      /too small/,
    ],
    ["<table><tr><td>1</td></tr></table>", /has no headers/],
    ["<p style='width:3000px'>wide</p>", /scrolls sideways/],
  ])("find what is wrong with %s", async (body, words) => {
    await show(body);
    expect((await problemsOf(page)).join("\n")).toMatch(words);
  });

  it.each([
    ["<button style='outline:none'>Go</button>", /focus cannot be seen: button Go/],
    ["<button style='position:fixed;top:-99px'>Go</button>", /what cannot be seen: button Go/],
  ])("find focus that gets lost in %s", async (body, words) => {
    await show(body);
    expect((await tabThrough(page)).problems.join("\n")).toMatch(words);
  });
});
