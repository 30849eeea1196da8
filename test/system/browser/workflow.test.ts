/** What people do about incidents on the page: two of them at once, on the service's own workflow. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AuditRow } from "../../../src/history/history.ts";
import { digestOf } from "../../../src/model/digest.ts";
import type { Incident } from "../../../src/model/incident.ts";
import { Workflow } from "../../../src/live/service/workflow/workflow.ts";
import { howRight, judgementsOf } from "../../../src/live/service/site/how-right.ts";
import type { FaultRecord } from "../../../src/model/fault-record.ts";
import type { AskedRecord, SiteLogs } from "../../../src/model/site.ts";
import { INCIDENT, PICTURE } from "../../support/serve-view.ts";
import { problemsOf } from "./accessibility.ts";
import { PATIENCE_MS, startChromium, whyNoChromium } from "./chromium.ts";
import { type PageService, servePage } from "./page-view.ts";

const OPEN: Incident = {
  ...INCIDENT,
  id: "llama.a1.slow.i9",
  state: "confirmed",
  resolvedMs: null,
};
const OVER: Incident = {
  ...INCIDENT,
  id: "llama.a1.slow.i3",
  state: "resolved",
  openedMs: Date.now() - 3_600_000,
  resolvedMs: Date.now(),
};
const ALL = [OPEN, OVER];
const LINE = { line: 7, isKey: true, timeMs: null, count: 1 };
const LOGS = [{ ...PICTURE.logs[0]!, lines: [{ ...LINE, text: "vault: lease 17 was refused" }] }];

describe.skipIf(whyNoChromium !== "")(`incident workflow on the page${whyNoChromium}`, () => {
  let browser: Browser;
  let served: PageService;
  let rows: AuditRow[];
  let workflow: Workflow;
  let records: AskedRecord[];
  const pages: Page[] = [];

  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    rows = [];
    records = [];
    let ids = 0;
    workflow = new Workflow({
      nowMs: Date.now,
      newId: () => `row${ids++}`,
      history: {
        audit: async ({ incident }) =>
          rows.filter((row) => incident === undefined || row.incident === incident).reverse(),
        putAudit: async (row) => void rows.push(row),
      },
      incident: async (id) => ALL.find((one) => one.id === id) ?? null,
      machines: async () => ["node7"],
      changed(incident, handling) {
        if (incident && handling) served.tell({ type: "handling", job: incident.job, handling });
        else served.tell({ type: "mutes", mutes: workflow.mutes() });
      },
    });
    served = await servePage({
      jobs: [{ job: "llama", shape: [2, 2, 2] }],
      incidents: ALL,
      changed: {
        handling: (id) => workflow.commented(id),
        handlings: () => workflow.handlings,
        incidents: async ({ open = false }) =>
          ALL.filter(
            ({ id, state }) => !open || state !== "resolved" || workflow.reopened().has(id),
          ),
        handle: (id, asked, who) => workflow.handle(id, asked, who),
        mutes: () => workflow.mutes(),
        mute: (asked, who) => workflow.mute(asked, who),
        unmute: (id, who) => workflow.unmute(id, who),
        site: async () => ({ ...howRight(judgementsOf(workflow.handlings)), logs: learnt() }),
        removeRecord: async () => {
          records.splice(0);
          return learnt();
        },
        picture: async () => ({ ...PICTURE, logs: LOGS }),
        addRecord: async (asked) => {
          records.push(asked);
          return { id: "site.vault", title: asked.title } as FaultRecord;
        },
        digest: async (fromMs) => {
          const nowMs = Date.now();
          return digestOf(ALL, workflow.handlings, { fromMs, toMs: nowMs, nowMs }, false);
        },
        audit: async ({ incident }) => rows.filter((row) => row.incident === incident),
      },
    });
  });
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.close();
    await served.close();
  });

  async function open(path: string): Promise<Page> {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    pages.push(page);
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => expect.fail(error.message));
    await page.goto(`${served.url}/#${path}`);
    return page;
  }
  const press = (page: Page, name: string) =>
    page.getByRole("button", { name, exact: true }).click();
  const learnt = (): SiteLogs => ({
    healthyJobs: 0,
    normalEvents: 0,
    jobs: [],
    imports: [],
    records: records.map(({ title }) => ({
      id: "site.vault",
      title,
      isOwn: true,
      confirmed: 0,
      disputed: 0,
      certainty: 0.8,
    })),
  });
  const done = () => rows.map(({ what, detail }) => `${what} ${detail}`.trim());

  it("two people acknowledge, assign and comment, and each sees the other", async () => {
    const ada = await open(`/incidents/${OPEN.id}`);
    const grace = await open(`/incidents/${OPEN.id}`);
    await press(ada, "Acknowledge");
    await grace.getByText("Acknowledged by").waitFor();
    await grace.getByLabel("Assigned to").fill("grace");
    await press(grace, "Assign");
    await ada.waitForFunction(
      () => document.querySelector<HTMLInputElement>("[name=assignee]")?.value === "grace",
    );
    await grace.getByLabel(/^Comment/).fill("see **this** <img src=x onerror=alert(1)>\n`dmesg`");
    await press(grace, "Add comment");
    const comment = ada.locator(".comments li");
    await comment.waitFor();
    expect(await comment.locator("strong").allTextContents()).toContain("this");
    expect(await comment.locator("img").count()).toBe(0);
    expect(await comment.locator("code").textContent()).toBe("dmesg");
    expect(await grace.getByLabel(/^Comment/).inputValue()).toBe("");
    expect(await problemsOf(ada)).toEqual([]);
    const fleet = await open("/");
    await fleet.locator(".open-card .tag", { hasText: "grace" }).waitFor();
    await press(ada, "Take back");
    await grace.getByRole("button", { name: "Acknowledge", exact: true }).waitFor();
    expect(done()).toEqual([
      "acknowledge",
      "assign grace",
      "comment see **this** <img src=x onerror=alert(1)>\n`dmesg`",
      "unacknowledge",
    ]);
  });

  it("an answer is judged, and what it really was is said", async () => {
    const page = await open(`/incidents/${OPEN.id}`);
    await press(page, "Right");
    await page.getByText("right, says").waitFor();
    await press(page, "Wrong …");
    await page.getByLabel("Which machine was it?").fill("node7");
    await page.getByLabel("What was it?").selectOption("network-slow");
    await press(page, "Say so");
    await page.getByText("it was node7").waitFor();
    const { judgement } = await workflow.handling(OPEN.id);
    expect(judgement).toMatchObject({ isRight: false, machine: "node7", cause: "network-slow" });
    await page.goto(`${served.url}/#/site`);
    await page.getByText("judged, 0 were right").waitFor();
    await page.getByRole("link", { name: "node7" }).first().waitFor();
    await page.getByRole("link", { name: "How right were the answers?" }).click();
    const row = page.getByRole("row", { name: /^all/ });
    expect(await row.textContent()).toMatch(/10 \(0 %\)0 % to 79 %/);
    await page.getByText("was network-slow").waitFor();
    expect(await problemsOf(page)).toEqual([]);
  });

  it("a log line becomes a record of the site", async () => {
    const page = await open(`/incidents/${OPEN.id}`);
    await page.getByText("Show me the proof").click();
    await press(page, "Record this line");
    await page.getByLabel("What it means").fill("the vault is full");
    await page.getByLabel("Cause").selectOption("storage");
    await press(page, "Save record");
    await page.getByText("recorded as site.vault").waitFor();
    const [line] = LOGS[0]!.lines;
    expect(records).toEqual([
      {
        line: line!.text,
        title: "the vault is full",
        cause: "storage",
        action: "see this incident",
      },
    ]);
    // It was a mistake after all.
    await page.goto(`${served.url}/#/site/right`);
    await page.getByText("your record").waitFor();
    await press(page, "Remove the record the vault is full");
    await page.getByText("your record").waitFor({ state: "detached" });
    expect(records).toEqual([]);
  });

  it("one that is over is reopened, closed, merged and separated; nonsense is refused in words", async () => {
    const page = await open(`/incidents/${OVER.id}`);
    await page.getByLabel("Not over? Why").fill("still slow");
    await press(page, "Reopen");
    await page.locator(".handling .tag", { hasText: "reopened" }).waitFor();
    const fleet = await open("/");
    await fleet.locator(".open-card .tag", { hasText: "reopened" }).waitFor();
    await press(page, "Close");
    await fleet.locator(".open-card .tag", { hasText: "reopened" }).waitFor({ state: "detached" });
    await page.getByText("The same as another incident?").click();
    await page.getByLabel("Its id").fill(OVER.id);
    await press(page, "Merge");
    await page.getByText("cannot be merged into itself").waitFor();
    await page.getByLabel("Its id").fill(OPEN.id);
    await press(page, "Merge");
    await page.getByText("nobody is alerted of this one").waitFor();
    await press(page, "Separate again");
    await page.getByText("The same as another incident?").waitFor();
    expect(done()).toEqual(["reopen still slow", "close", `merge ${OPEN.id}`, "unmerge"]);
  });

  it("a machine is muted for maintenance, seen by others, and the mute is ended", async () => {
    const page = await open("/site");
    const other = await open("/site");
    await page.getByLabel("Kind").selectOption("maintenance");
    await page.getByLabel("Name").fill("node00*");
    await page.getByLabel("Why").fill("new firmware");
    await page.getByLabel("For how long").selectOption("4");
    await press(page, "Mute");
    const row = other.locator(".mutes li", { hasText: "machine node00*" });
    await row.waitFor();
    expect(workflow.hush({ ...OPEN, machines: ["node003"] })?.how).toBe("muted");
    expect(await problemsOf(other)).toEqual([]);
    await row.getByRole("button", { name: /^End/ }).click();
    await page.getByText("Nothing is muted.").waitFor();
    expect(workflow.hush({ ...OPEN, machines: ["node003"] })).toBeNull();
  });
});
