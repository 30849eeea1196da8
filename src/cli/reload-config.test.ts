/** A configuration that changes while the service runs. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { UserError } from "../base/errors.ts";
import { readServeConfig, type ServeConfig } from "../live/service/config/config.ts";
import type { Token } from "../live/service/http/authorize.ts";
import { changesOf, makeReload, tokensChanged, watchConfig } from "./reload-config.ts";

const ENV = { HOME: "/home/user" };
const BASE = readServeConfig(null, {}, ENV);

describe("changes of a configuration", () => {
  it("are in force at once, or named because they need a restart", () => {
    const { actions } = BASE;
    const cases: [Partial<ServeConfig>, string[], string[]][] = [
      [{}, [], []],
      [{ publicRead: true, allowedHosts: ["x"] }, ["publicRead", "allowedHosts"], []],
      [{ alerts: { ...BASE.alerts, alertmanager: ["http://a"] } }, ["alerts"], []],
      [{ actions: { ...actions, mostMachinesPerDay: 9 } }, ["limits of actions"], []],
      [{ actions: { ...actions, enabled: false } }, [], ["actions.enabled"]],
      [{ port: 1, dataFolder: "/x", tls: { cert: "a", key: "b" } }, [], ["port", "data", "tls"]],
    ];
    for (const [changed, live, restart] of cases)
      expect(changesOf(BASE, { ...BASE, ...changed })).toEqual({ live, restart });
  });

  it("know every section: a new one is in force, or needs a restart", () => {
    const other = Object.fromEntries(
      Object.keys(BASE).map((key) => [key, key === "actions" ? BASE.actions : { other: key }]),
    );
    const { live, restart } = changesOf(BASE, other as unknown as ServeConfig);
    const known = [...live, ...restart.map((key) => (key === "data" ? "dataFolder" : key))];
    // Said on the command line only, and sentences for the start.
    const all = Object.keys(BASE).filter((key) => !["actions", "insecure", "notes"].includes(key));
    expect(known.sort()).toEqual(all.sort());
  });
});

it("names tokens that were added, removed or changed, and no secret", () => {
  const one = (name: string, more: Partial<Token> = {}): Token => ({
    name,
    scopes: ["read"],
    jobs: null,
    agent: null,
    sha256: "5ec7e7",
    ...more,
  });
  const before = [one("gone"), one("same"), one("more"), one("fewer"), one("new-secret")];
  const after = [
    one("more", { scopes: ["read", "act"] }),
    one("fewer", { jobs: ["a-*"] }),
    one("same"),
    one("new-secret", { sha256: "0the7" }),
    one("added", { scopes: ["agent"], agent: "node1" }),
  ];
  expect(tokensChanged(before, after)).toBe(
    "tokens (more from (read) to (read+act); fewer from (read) to (read, jobs a-*); " +
      "another secret of new-secret; added added (agent, agent node1); removed gone)",
  );
});

describe("reloading", () => {
  it("says what is in force, and what waits for a restart", async () => {
    const said: string[] = [];
    let changes: { live: string[]; restart: string[] } = { live: [], restart: [] };
    const reload = makeReload({
      read: () => BASE,
      apply: async () => changes,
      failed: () => undefined,
      say: (line) => said.push(line),
    });
    await reload();
    changes = { live: [], restart: ["actions.hooks"] };
    await reload();
    expect(said).toEqual([
      "reloaded: nothing of it has changed",
      "reloaded: these need a restart: actions.hooks",
    ]);
  });

  it("keeps the earlier configuration where the new one is wrong, and says so", async () => {
    const said: string[] = [];
    const failed: boolean[] = [];
    let config: () => ServeConfig = () => BASE;
    const applied: ServeConfig[] = [];
    const reload = makeReload({
      read: () => config(),
      apply: async (next) => {
        applied.push(next);
        if (next.host === "0.0.0.0") throw new UserError("no tokens", "configure some", 2);
        return { live: ["tokens"], restart: ["tls", "port"] };
      },
      failed: (isFailed) => failed.push(isFailed),
      say: (line) => said.push(line),
    });
    await reload();
    config = () => {
      throw new UserError("serve.json: is not JSON", "look", 2);
    };
    await reload();
    config = () => ({ ...BASE, host: "0.0.0.0" });
    await reload();
    config = () => {
      throw new TypeError("a mistake of ours");
    };
    await reload();
    config = () => BASE;
    await reload();
    expect(said).toEqual([
      "reloaded: tokens changed; these need a restart: tls, port",
      "not reloaded, the earlier one stays in force: serve.json: is not JSON",
      "not reloaded, the earlier one stays in force: no tokens",
      "not reloaded, the earlier one stays in force: a mistake of ours",
      "reloaded: tokens changed; these need a restart: tls, port",
    ]);
    expect(failed).toEqual([false, true, true, true, false]);
    expect(applied).toHaveLength(3);
  });
});

describe("the file", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "faultline-reload-"));
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  });
  afterEach(() => {
    vi.useRealTimers();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is read again when it is another one, and at SIGHUP", async () => {
    const file = join(folder, "serve.json");
    writeFileSync(file, "{}");
    let reloads = 0;
    const stop = watchConfig(file, async () => void reloads++);
    const look = async (): Promise<void> => {
      vi.advanceTimersByTime(5000);
      // The file system answers in its own time: has it answered us several times, it has answered the watch.
      for (let i = 0; i < 20; i++) await stat(file).catch(() => null);
    };
    await look();
    await look();
    expect(reloads).toBe(0);
    writeFileSync(join(folder, "new"), '{"port": 1}');
    renameSync(join(folder, "new"), file);
    await look();
    expect(reloads).toBe(1);
    rmSync(file);
    await look();
    expect(reloads).toBe(1);
    writeFileSync(file, '{"port": 2}');
    process.emit("SIGHUP");
    await look();
    await look();
    expect(reloads).toBe(2);
    stop();
    process.emit("SIGHUP");
    await look();
    expect(reloads).toBe(2);
    expect(process.listenerCount("SIGHUP")).toBe(0);
  });
});
