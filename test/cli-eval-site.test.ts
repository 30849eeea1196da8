import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openLocalHistory } from "../src/history/local-history.ts";
import { storeText } from "../src/history/log-store-file.ts";
import { howRight } from "../src/live/service/site/how-right.ts";
import type { SiteReport } from "../src/model/site.ts";
import { EMPTY_STORE } from "../src/model/log-store.ts";
import { recordOfLine } from "../src/pipeline/logs.ts";
import { faultline, faultlineIn } from "./support/cli.ts";
import { testIncident } from "./support/live/incident.ts";
import { judged } from "./support/live/judged.ts";

const LINE = "zorblax daemon: lease of vault shard 17 was refused by the coordinator";
const ABOUT = { title: "the vault is full", action: "ask storage", cause: "storage" } as const;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "faultline-eval-site-"));
  const { history } = await openLocalHistory(join(folder, "history.duckdb"));
  const judge = (id: number, incident: string, isRight: boolean) =>
    history.putAudit({
      id: `row${id}`,
      atMs: id,
      who: "ada",
      what: "judge",
      incident,
      action: "",
      detail: JSON.stringify(judged(isRight, {}, isRight ? {} : { cause: "storage" })),
    });
  await judge(1, "a", false);
  await judge(2, "b", true);
  await judge(3, "c", false);
  // Somebody knew better later.
  await judge(4, "a", true);
  await history.putIncident(testIncident({ id: "a", onsetMs: 1e9, resolvedMs: 2e9 }));
  await history.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

const run = (...words: string[]) => faultlineIn({ cwd: folder }, "eval", "site", ...words);

describe("faultline eval site", () => {
  it("counts the last judgement of each incident in a service's folder", async () => {
    const { stdout, status } = await run("--data", ".", "--json");
    expect(status).toBe(0);
    const report = JSON.parse(stdout) as SiteReport;
    expect(report.all).toMatchObject({ judged: 3, right: 2 });
    expect(report.confusions).toEqual([{ said: "gpu-hang", truth: "storage", incidents: 1 }]);
    const table = (await run("--data", ".")).stdout;
    expect(table).toMatch(/^hang +3 +2 \(67 %\) +21 to 94 % +90 %/m);
    expect(table).toMatch(/1 {2}gpu-hang → storage/);
    const { stdout: said } = await run("--data", ".", "--labels", "labels.json");
    expect(said).toContain("1 labels: labels.json");
    const file = readFileSync(join(folder, "labels.json"), "utf8");
    expect(JSON.parse(file)).toMatchObject({ labels: [{ machine: "node003", state: "faulty" }] });
  });

  it("asks a service with a token, and says what it lacks", async () => {
    const server = createServer((request, response) => {
      const isKnown = request.headers.authorization === "Bearer letmein";
      response.statusCode = isKnown && request.url?.startsWith("/api/v1/site") ? 200 : 401;
      const store = { ...EMPTY_STORE, records: [recordOfLine(LINE, ABOUT, EMPTY_STORE)] };
      if (!isKnown) response.end('{"error": "this needs a token"}');
      else if (request.url === "/api/v1/site/export?texts=true") response.end(storeText(store));
      else response.end(JSON.stringify(howRight([judged(true)])));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      writeFileSync(join(folder, "token"), "letmein\n");
      const answered = await run("--service", url, "--token-file", "token", "--json");
      expect(JSON.parse(answered.stdout)).toMatchObject({ all: { judged: 1, right: 1 } });
      const refused = await run("--service", url);
      expect(refused.status).toBe(1);
      expect(refused.stderr).toMatch(
        /answers with 401 \(this needs a token\); give a token of scope read/,
      );
      // What the site knows is asked for in the same way.
      const words = ["diagnose", join(folder, "rank0.log"), "--quiet", "--json", "--store", url];
      writeFileSync(join(folder, "rank0.log"), `2026-11-01 10:00:07 [rank0] ${LINE}\n`);
      const file = join(folder, "token");
      const known = await faultline(...words, "--token-file", file);
      expect(known.stdout).toContain("the vault is full");
      expect((await faultline(...words)).stderr).toContain("answers with 401");
    } finally {
      server.close();
    }
  });

  it("says what is wrong with the call", async () => {
    expect(await run()).toMatchObject({ status: 2 });
    expect(await run("--data", "nowhere")).toMatchObject({
      status: 3,
      stderr: expect.stringMatching(/holds no history/),
    });
  });
});
