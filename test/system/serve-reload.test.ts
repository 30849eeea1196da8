/** `serve` with a configuration file that changes: tokens and receivers without a restart, and a file with an error. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { AuditRow } from "../../src/history/history.ts";
import { runServe } from "../../src/cli/serve.ts";
import { until } from "../support/until.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-serve-reload-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const SECRETS = { one: "first-secret-0123456789", two: "second-secret-0123456789" };
const token = (name: keyof typeof SECRETS) => ({
  name,
  scopes: ["read"],
  token: SECRETS[name],
  plain: true,
});

it("takes other tokens at SIGHUP, keeps the earlier ones where the file has an error", async () => {
  const file = join(folder, "serve.json");
  const put = (config: object | string): void =>
    writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
  const base = { port: 0, data: "data" };
  put({ ...base, tokens: [token("one")] });
  let text = "";
  const screen = { write: (more: string) => void (text += more) };
  const running = runServe({ out: screen, err: screen, env: {} }, { config: file }, "1.2.3");
  try {
    const url = await until(() => /listening on (\S+)/.exec(text)?.[1] ?? null, "listening");
    const get = async (name: keyof typeof SECRETS, path: string): Promise<Response> =>
      await fetch(url + path, { headers: { authorization: `Bearer ${SECRETS[name]}` } });
    const statuses = async (): Promise<number[]> => [
      (await get("one", "/api/v1/jobs")).status,
      (await get("two", "/api/v1/jobs")).status,
    ];
    const reload = async (config: object | string, says: string): Promise<void> => {
      put(config);
      process.emit("SIGHUP");
      await until(() => text.includes(says), says);
    };
    const health = async (): Promise<unknown> => await (await fetch(`${url}/healthz`)).json();
    expect(await statuses()).toEqual([200, 401]);

    const second = { ...base, tokens: [token("two")], detection: { hangSeconds: 99 } };
    const changed =
      "reloaded: tokens (added two (read); removed one) changed; these need a restart: detection";
    await reload(second, changed);
    expect(await statuses()).toEqual([401, 200]);
    expect(await health()).toMatchObject({ status: "ok" });
    expect(await health()).not.toHaveProperty("degraded");

    await reload('{"tokens": [', "not reloaded, the earlier one stays in force");
    expect(await statuses()).toEqual([401, 200]);
    expect(await health()).toMatchObject({
      status: "ok",
      degraded:
        "the configuration file has an error, the earlier one stays in force; see the service's log",
    });
    await reload({ ...second, tokens: [] }, "no tokens and no sign-in any more");
    text = "";
    const both = { ...second, tokens: [token("one"), token("two")] };
    await reload(both, "reloaded: tokens (added one (read)) changed");
    expect(await statuses()).toEqual([200, 200]);
    expect(await health()).toMatchObject({ status: "ok" });
    expect(await health()).not.toHaveProperty("degraded");
    await until(async () => {
      const { audit } = (await (await get("one", "/api/v1/audit")).json()) as { audit: AuditRow[] };
      return audit.filter(({ who, what }) => who === "service" && what === "reload").length >= 4;
    }, "each is in the audit trail");
  } finally {
    process.emit("SIGTERM");
    expect(await running).toBe(0);
  }
  expect(process.listenerCount("SIGHUP")).toBe(0);
});
