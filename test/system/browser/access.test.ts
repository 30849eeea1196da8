/** Access in a real browser: a person signs in through a provider, acts, shares a read-only link, and signs out. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { OidcConfig } from "../../../src/live/service/access/oidc.ts";
import { Links } from "../../../src/live/service/access/links.ts";
import { SignIn } from "../../../src/live/service/access/sign-in.ts";
import type { Incident } from "../../../src/model/incident.ts";
import { type OidcProvider, startOidcProvider } from "../../support/live/oidc-provider.ts";
import { INCIDENT, PICTURE } from "../../support/serve-view.ts";
import { problemsOf } from "./accessibility.ts";
import { PATIENCE_MS, startChromium, whyNoChromium } from "./chromium.ts";
import { type PageService, servePage } from "./page-view.ts";

const OTHER: Incident = { ...INCIDENT, id: "x-1.a1.hang.i1", job: "x-1" };

describe.skipIf(whyNoChromium !== "")(`access in the page${whyNoChromium}`, () => {
  let browser: Browser;
  let provider: OidcProvider;
  let served: PageService;
  let context: BrowserContext;
  let page: Page;
  const notes: unknown[][] = [];
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    notes.length = 0;
    provider = await startOidcProvider("ES256");
    provider.person = { email: "ada@example.org", groups: ["ops"] };
    const oidc: OidcConfig = {
      issuer: provider.issuer,
      clientId: "faultline",
      clientSecret: provider.clientSecret,
      redirectUrl: null,
      request: ["openid"],
      groupsClaim: "groups",
      nameClaim: "email",
      groups: [{ group: "ops", scopes: ["read", "act"], jobs: ["llama*"] }],
      sessionSeconds: 3600,
    };
    const signIn = new SignIn({ oidc, isTls: false, nowMs: Date.now });
    const documents = new Map<string, unknown>();
    served = await servePage({
      jobs: [
        { job: "llama", shape: [2, 2, 2] },
        { job: "x-1", shape: [2, 2, 2] },
      ],
      incidents: [INCIDENT, OTHER],
      pictures: new Map([[INCIDENT.id, PICTURE]]),
      signIn,
      auth: { groups: oidc.groups, personOf: ({ headers }) => signIn.personOf(headers) },
      changed: {
        note: async (...row) => void notes.push(row),
        links: new Links({
          history: {
            document: async (key) => documents.get(key) ?? null,
            putDocument: async (key, document) => void documents.set(key, document),
          },
          nowMs: Date.now,
          rightOf: (who) => who,
        }),
      },
    });
    context = await browser.newContext();
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => expect.fail(error.message));
  });
  afterEach(async () => {
    await context.close();
    await served.close();
    await provider.close();
  });

  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();

  it("signs a person in, back to the same place, and out again", async () => {
    await page.goto(`${served.url}/#/incidents/${INCIDENT.id}`);
    await page.getByText("Sign in to read").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    await page.getByRole("link", { name: "Sign in" }).click();
    await page.getByText("ada@example.org").waitFor();
    expect(new URL(page.url()).hash).toBe(`#/incidents/${INCIDENT.id}`);
    await page.locator("article.incident").waitFor();
    await page.getByText("connected").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    // A job of others is not there, neither in the list nor by its address.
    await page.goto(`${served.url}/#/`);
    await page.getByRole("link", { name: "llama" }).first().waitFor();
    expect(await page.getByRole("link", { name: "x-1" }).count()).toBe(0);
    await page.goto(`${served.url}/#/incidents/${OTHER.id}`);
    await page.getByRole("heading", { name: "There is no such incident" }).waitFor();

    await press("Sign out");
    await page.getByText("Sign in to read").waitFor();
    expect(await context.cookies()).toEqual([]);
    expect(notes.map(([who, what]) => [who, what])).toEqual([
      ["oidc:ada@example.org", "sign-in"],
      ["oidc:ada@example.org", "sign-out"],
    ]);
  });

  it("shares one incident by a read-only link, until it is revoked", async () => {
    await page.goto(`${served.url}/#/incidents/${INCIDENT.id}`);
    await page.getByRole("link", { name: "Sign in" }).click();
    await press("Share read-only link");
    // A record would be about jobs of others, too.
    await page.getByText("Xid 79").waitFor({ state: "attached" });
    expect(await page.locator(".record-line").count()).toBe(0);
    const link = page.getByRole("link", { name: "The link" });
    await link.waitFor();
    const address = new URL((await link.getAttribute("href"))!, served.url).href;
    expect(await problemsOf(page)).toEqual([]);

    const guests = await browser.newContext();
    try {
      const guest = await guests.newPage();
      guest.setDefaultTimeout(15_000);
      await guest.goto(address);
      await guest.getByText("Read-only link").waitFor();
      await guest.locator("article.incident").waitFor();
      await guest.getByText("Xid 79").waitFor({ state: "attached" });
      const names = await guest.locator("article.incident button").allTextContents();
      // To look at and to take along, and nothing that changes anything.
      expect(names).toEqual(["Copy link", "Copy Markdown", "↓", "Perfetto trace", "JSON"]);
      // The address can be passed on without giving the link away.
      expect(new URL(guest.url()).hash).toBe(`#/incidents/${INCIDENT.id}`);
      expect(await guest.getByRole("button", { name: "Share read-only link" }).count()).toBe(0);
      expect(await problemsOf(guest)).toEqual([]);
      await press("Revoke all");
      await page.getByText("All read-only links to this incident are revoked.").waitFor();
      await guest.reload();
      await guest.getByText("Sign in to read").waitFor();
      expect(await guest.locator("article.incident").count()).toBe(0);
    } finally {
      await guests.close();
    }
    expect(notes.map(([, what]) => what)).toEqual(["sign-in", "link", "open-link", "revoke-links"]);
  });
});
