/** An action on the page, from its proposal to its undoing, against an API server stub of Kubernetes; and the off switch. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Incident } from "../../../src/model/incident.ts";
import { ActionsSwitch } from "../../../src/live/service/actions/switch.ts";
import { openTestService, type TestService } from "../../support/live/action-service.ts";
import { testVerdict } from "../../support/live/incident.ts";
import { type KubernetesStub, startKubernetesStub } from "../../support/live/kubernetes-stub.ts";
import { TEST_CERTIFICATE } from "../../support/live/tls.ts";
import { INCIDENT } from "../../support/serve-view.ts";
import { problemsOf } from "./accessibility.ts";
import { PATIENCE_MS, startChromium, whyNoChromium } from "./chromium.ts";
import { type PageService, servePage } from "./page-view.ts";

const NODE = "/api/v1/nodes/node003";
const HANG: Incident = {
  ...INCIDENT,
  id: "llama.a1.hang.i90",
  job: "llama",
  kind: "hang",
  state: "confirmed",
  resolvedMs: null,
  verdict: testVerdict(),
  machines: ["node003"],
  actions: [],
};

describe.skipIf(whyNoChromium !== "")(`actions on the page${whyNoChromium}`, () => {
  let browser: Browser;
  let folder: string;
  let stub: KubernetesStub;
  let service: TestService;
  let page: Page;
  let served: PageService;
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "faultline-page-actions-"));
    stub = await startKubernetesStub();
    stub.add(NODE, {});
    writeFileSync(join(folder, "ca.crt"), TEST_CERTIFICATE);
    const kubernetes = {
      do: ["cordon-node"],
      access: { server: stub.url, token: { text: stub.token }, ca: join(folder, "ca.crt") },
      taint: null,
      pods: null,
      workload: null,
      timeoutSeconds: 5,
    };
    service = openTestService(folder, {
      dryRun: false,
      approval: "required",
      hooks: [],
      drivers: { kubernetes },
    });
    const all = await service.confirm(HANG);
    const documents = new Map<string, unknown>();
    const actionsSwitch = new ActionsSwitch({
      enabled: true,
      canRun: true,
      nowMs: Date.now,
      history: {
        document: async (key) => documents.get(key) ?? null,
        putDocument: async (key, document) => void documents.set(key, document),
      },
      audit: async () => undefined,
      changed(state) {
        service.off = state.isOn ? null : state.says;
        served.tell({ type: "actions", ...state });
      },
      log: () => undefined,
    });
    served = await servePage({
      jobs: [{ job: "llama", shape: [2, 2, 2] }],
      incidents: [all],
      changed: {
        incidents: async () => [service.incident(HANG.id)],
        incident: async () => service.incident(HANG.id),
        audit: async () => service.audit(),
        act: (_id, action, verb, who, dryRun) =>
          service.actions.act(service.incident(HANG.id), action, verb, who, dryRun),
        actionsSwitch: () => actionsSwitch.state,
        switchActions: (isOn, who) => actionsSwitch.switch(isOn, who),
      },
    });
    // What is saved is told, as the service does.
    const save = service.save.bind(service);
    service.save = (incident) => {
      const saved = save(incident);
      served.tell({ type: "incident", incident: saved });
      return saved;
    };
    page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => expect.fail(error.message));
    await page.goto(`${served.url}/#/incidents/${HANG.id}`);
  });
  afterEach(async () => {
    await page.close();
    await served.close();
    await stub.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const card = () => page.locator(".fl-proposal", { hasText: "Cordon the node" });
  const state = (words: string) => card().locator(".fl-state", { hasText: words }).waitFor();
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();

  it("goes from proposed over running and done to undone", async () => {
    await state("proposed");
    await press("Approve …");
    const plan = page.locator(".confirm .plan");
    await plan.waitFor();
    expect(await plan.textContent()).toBe(`cordon node node003 (PATCH ${NODE})`);
    let release = (): void => undefined;
    const isReleased = new Promise<void>((resolve) => (release = resolve));
    stub.hold = async (line) => {
      if (line.startsWith("PATCH")) await isReleased;
      return true;
    };
    await press("Yes, do it");
    await state("running");
    expect(await card().getByRole("button").count()).toBe(0);
    release();
    await state("done");
    await card().getByText("node003 is cordoned.").waitFor();
    expect(stub.object(NODE).spec["unschedulable"]).toBe(true);
    expect(await problemsOf(page)).toEqual([]);
    await press("Undo …");
    await plan.waitFor();
    expect(await plan.textContent()).toBe(`uncordon node node003 (PATCH ${NODE})`);
    await press("Yes, do it");
    await state("undone");
    await card().getByText("node003 takes new pods again.").waitFor();
    expect(stub.object(NODE).spec).toEqual({});
    const words = service.audit().map(({ what }) => what);
    expect(words.filter((word) => word !== "dry-run")).toEqual([
      "propose",
      "approve",
      "run",
      "outcome",
      "undo",
      "outcome",
    ]);
  });

  it("says on every page that actions are off, and runs none until somebody allows it", async () => {
    await state("proposed");
    await press("Stop all actions");
    const bar = page.locator(".line-bar", { hasText: "Actions are off" });
    await bar.waitFor();
    expect(await bar.textContent()).toMatch(/Actions were switched off by loopback at /);
    await press("Approve …");
    await page.locator(".confirm .plan").waitFor();
    await press("Yes, do it");
    await page.getByRole("alert").filter({ hasText: "Actions were switched off" }).waitFor();
    expect(stub.requests).toEqual([]);
    expect(await problemsOf(page)).toEqual([]);
    await page.goto(`${served.url}/#/`);
    await page.reload();
    await bar.waitFor();
    await press("Allow actions again");
    await bar.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Stop all actions" }).waitFor();
  });
});
