/**
 * The page in a real browser: `npx tsx bench/page.ts`. Ten thousand ranks whose values change every second, a pointer
 * that moves and a wheel that turns: frames per second and memory; how soon the page says something on loopback; what
 * the bundle weighs. `--seconds N`, `--ranks N`.
 */
import { readdirSync, readFileSync } from "node:fs";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { startChromium } from "../test/system/browser/chromium.ts";
import { servePage } from "../test/system/browser/page-view.ts";
import { INCIDENT } from "../test/support/serve-view.ts";

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "20" },
    ranks: { type: "string", default: "10000" },
  },
});
const seconds = Number(flags.seconds);
const data = Math.ceil(Number(flags.ranks) / 80);

const assets = fileURLToPath(new URL("../dist/web/assets", import.meta.url));
let raw = 0;
let gzip = 0;
let brotli = 0;
for (const name of readdirSync(assets)) {
  const bytes = readFileSync(join(assets, name));
  raw += bytes.length;
  gzip += gzipSync(bytes, { level: 9 }).length;
  brotli += brotliCompressSync(bytes).length;
}
const kb = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KB`;
console.log(`bundle: ${kb(raw)}, gzip ${kb(gzip)} (goal ≤ 120 KB), brotli ${kb(brotli)}`);

const now = Date.now();
const incident = { ...INCIDENT, job: "big", onsetMs: now - 60_000, openedMs: now - 50_000 };
const service = await servePage({
  jobs: [{ job: "big", shape: [8, 10, data], slow: 4321 }],
  incidents: [{ ...incident, state: "confirmed", resolvedMs: null, ranks: [4321] }],
});
const ticking = setInterval(() => service.tick(), 1000);
const browser = await startChromium(["--enable-precise-memory-info"]);
try {
  for (const [what, hash] of [
    ["fleet", "#/"],
    ["job", "#/jobs/big"],
  ] as const) {
    const times: number[] = [];
    for (let k = 0; k < 5; k++) {
      const page = await browser.newPage();
      await page.goto(`${service.url}/${hash}`);
      await page.waitForFunction(`document.querySelector("main")?.textContent.includes("big")`);
      times.push(await page.evaluate<number>("performance.now()"));
      const [paint] = await page.evaluate<number[]>(
        `performance.getEntriesByName("first-contentful-paint").map((e) => e.startTime)`,
      );
      if (k === 4) console.log(`${what}: first paint of anything ${paint?.toFixed(0)} ms`);
      await page.close();
    }
    times.sort((a, b) => a - b);
    console.log(
      `${what}: says what it is about after ${times[2]!.toFixed(0)} ms (median of 5, worst ${times[4]!.toFixed(0)}; goal ≤ 1000)`,
    );
  }
  const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
  await page.goto(`${service.url}/#/jobs/big`);
  await page.waitForSelector("canvas");
  await page.waitForTimeout(3000);
  for (const how of ["still", "moving"] as const) {
    const { frames, worst, late } = await measure(page, how);
    console.log(
      `${10 * 8 * data} ranks, pointer ${how}: ${frames.toFixed(1)} frames/s over ${seconds} s (goal ≥ 30), longest gap ${worst.toFixed(0)} ms, ${late} gaps over 100 ms`,
    );
  }
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable");
  const { metrics } = await client.send("Performance.getMetrics");
  const heap = metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? NaN;
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const memory = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => pssMb(id))
    .reduce((a, b) => Math.max(a, b), 0);
  console.log(
    `memory: ${(heap / 2 ** 20).toFixed(0)} MB of JavaScript, the page's process ${memory.toFixed(0)} MB (goal ≤ 300)`,
  );
} finally {
  clearInterval(ticking);
  await browser.close();
  await service.close();
}

/** Its share of what it shares with others, and all of its own. */
function pssMb(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? NaN) / 1024;
  } catch {
    return 0;
  }
}

async function measure(
  page: Page,
  how: "still" | "moving",
): Promise<{ frames: number; worst: number; late: number }> {
  await page.evaluate(`(() => {
    const gaps = (globalThis.gaps = []);
    let last = performance.now();
    const turn = (now) => { gaps.push(now - last); last = now; if (globalThis.gaps === gaps) requestAnimationFrame(turn); };
    requestAnimationFrame(turn);
  })()`);
  const end = Date.now() + 1000 * seconds;
  for (let k = 0; Date.now() < end; k++) {
    if (how === "moving") {
      await page.mouse.move(300 + ((k * 37) % 1000), 300 + ((k * 23) % 600));
      if (k % 10 === 0) await page.mouse.wheel(0, k % 40 < 20 ? 120 : -120);
    }
    await page.waitForTimeout(30);
  }
  const gaps = (await page.evaluate<number[]>("globalThis.gaps.splice(0)")).slice(1);
  await page.evaluate("globalThis.gaps = null");
  const sum = gaps.reduce((a, b) => a + b, 0);
  return {
    frames: (1000 * gaps.length) / sum,
    worst: Math.max(...gaps),
    late: gaps.filter((gap) => gap > 100).length,
  };
}
