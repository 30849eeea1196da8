/** Backups: taken from a service that runs and from one that does not, restored elsewhere, with the same answers. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDuckDbHistory } from "../src/history/duckdb-history.ts";
import { openJournalHistory } from "../src/history/journal-history.ts";
import { faultline } from "./support/cli.ts";
import { openStore, type AnsweringService } from "./support/open-store.ts";

const archive = fileURLToPath(new URL("../fixtures/stores/version-1.tar.gz", import.meta.url));
let folder: string;
let data: string;
let file: string;
let services: AnsweringService[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-backup-"));
  execFileSync("tar", ["xf", archive, "-C", folder]);
  data = join(folder, "duckdb");
  file = join(folder, "out.tar.gz");
  services = [];
});
afterEach(async () => {
  for (const service of services) await service.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(at: string): Promise<AnsweringService> {
  const service = await openStore(at);
  services.push(service);
  return service;
}

const PATHS = [
  "/api/v1/incidents",
  "/api/v1/offenders?days=3650",
  "/api/v1/audit",
  "/api/v1/jobs/rehearsal/iterations",
];
async function answersOf(service: AnsweringService): Promise<unknown[]> {
  const texts = await Promise.all(PATHS.map(async (path) => (await service.get(path)).text));
  const { incidents } = JSON.parse(texts[0]!) as {
    incidents: { id: string; wastedGpuMs: number }[];
  };
  const more = incidents.flatMap(({ id }) =>
    ["history", "picture", "report"].map((what) => `/api/v1/incidents/${id}/${what}`),
  );
  const others = await Promise.all(more.map((path) => service.get(path)));
  // What an open incident has wasted goes on with the clock.
  return [incidents.map((one) => ({ ...one, wastedGpuMs: 0 })), texts.slice(1), others];
}

const backup = (...words: string[]) => faultline("backup", "--data", data, "--out", file, ...words);
const restore = (to: string, from = file) => faultline("restore", "--data", to, from);

describe("a backup", () => {
  it("of a service that runs gives the same answers elsewhere", async () => {
    const service = await open(data);
    const before = await answersOf(service);
    const { status, stdout } = await backup("--json");
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      schema: "faultline.backup/1",
      stores: ["history.duckdb"],
      files: 8,
    });
    expect(readdirSync(data).filter((name) => name.startsWith(".backup"))).toEqual([]);
    const to = join(folder, "elsewhere", "data");
    expect(await restore(to)).toMatchObject({ status: 0, stderr: "" });
    expect(await answersOf(await open(to))).toEqual(before);
    expect(readdirSync(to).sort()).toEqual(
      expect.arrayContaining(["history.duckdb", "incidents", "pictures"]),
    );
    // The service has gone on meanwhile.
    expect(await answersOf(service)).toEqual(before);
  });

  it("of a folder that no service has open, also of a plain file", async () => {
    expect(await backup()).toMatchObject({ status: 0 });
    const to = join(folder, "to");
    await restore(to);
    const [a, b] = [await answersOf(await open(to)), await answersOf(await open(data))];
    expect(a).toEqual(b);

    const history = await openJournalHistory(join(folder, "plain", "history.jsonl"));
    await history.copyTo(join(folder, "copy.jsonl"), []);
    const copy = await openJournalHistory(join(folder, "copy.jsonl"));
    expect(await copy.incidents({})).toEqual(await history.incidents({}));
    await copy.close();
    await history.close();
  });

  it("holds no key that signs links, and writes nothing through a link that lies in its way", async () => {
    const key = "5ec2e7".repeat(10);
    const stores = [
      await openDuckDbHistory(join(folder, "duckdb", "history.duckdb")),
      await openJournalHistory(join(folder, "plain", "history.jsonl")),
    ];
    for (const history of stores) {
      await history.putDocument("access/link-key", { key });
      await history.putDocument("access/links-revoked/i1", { atMs: 1 });
      await history.copyTo(join(folder, "copy"), ["access/link-key"]);
      expect(readFileSync(join(folder, "copy")).includes(key)).toBe(false);
      rmSync(join(folder, "copy"));
      await history.close();
    }
    writeFileSync(join(folder, "victim"), "as before");
    symlinkSync(join(folder, "victim"), `${file}.part`);
    expect(await backup()).toMatchObject({ status: 0 });
    expect(readFileSync(join(folder, "victim"), "utf8")).toBe("as before");
    await restore(join(folder, "to"));
    const history = await openDuckDbHistory(join(folder, "to", "history.duckdb"));
    expect(await history.document("access/link-key")).toBeNull();
    expect(await history.document("access/links-revoked/i1")).toEqual({ atMs: 1 });
    await history.close();
  });

  it("is refused where there is nothing to copy, or no archive to write", async () => {
    mkdirSync(join(folder, "empty"));
    const { status, stderr } = await faultline(
      "backup",
      "--data",
      join(folder, "empty"),
      "--out",
      file,
    );
    expect([status, stderr]).toEqual([3, expect.stringContaining("holds no history")]);
    expect(await faultline("backup", "--data", data, "--out", "x.zip")).toMatchObject({
      status: 2,
    });
    expect(existsSync(file)).toBe(false);
  });
});

describe("a restore", () => {
  it("never writes over a history, and says what to do", async () => {
    await backup();
    const { status, stderr } = await restore(data);
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/is in use: there is incidents; stop the service, and .* mv '/),
    ]);
    await open(data);
  });

  it("that was interrupted anywhere leaves a folder that no service takes, until it is run again", async () => {
    await backup();
    const to = join(folder, "to");
    // As kill -9 leaves it: some parts are in their places, others are not.
    mkdirSync(join(to, ".restoring", "incidents"), { recursive: true });
    mkdirSync(join(to, "pictures"));
    writeFileSync(join(to, "history.duckdb"), "half");
    await expect(openStore(to)).rejects.toThrow(/holds half a restore/);
    expect(await restore(to)).toMatchObject({ status: 0 });
    expect(existsSync(join(to, ".restoring"))).toBe(false);
    expect(await (await open(to)).get("/healthz")).toMatchObject({ status: 200 });
  });

  it("of a file that is cut, damaged, newer or something else changes nothing", async () => {
    await backup();
    const cut = join(folder, "cut.tar.gz");
    writeFileSync(cut, readFileSync(file));
    truncateSync(cut, Math.floor(statSync(file).size / 2));
    const manifest = (text: string): string => {
      writeFileSync(join(folder, "backup.json"), text);
      const path = join(folder, "made.tar.gz");
      execFileSync("tar", ["czf", path, "-C", folder, "backup.json"]);
      return path;
    };
    const text = join(folder, "text.tar.gz");
    writeFileSync(text, gzipSync("hello"));
    const damaged = join(folder, "damaged.tar.gz");
    const bytes = gunzipSync(readFileSync(file));
    const inside = bytes.indexOf("history.duckdb\0") + 100_000;
    bytes[inside] = bytes[inside]! ^ 1;
    writeFileSync(damaged, gzipSync(bytes));
    const cases: [string, RegExp][] = [
      [damaged, /damaged\.tar\.gz cannot be restored: .*checksum.*; give another backup/],
      [cut, /cannot be restored|cut off/],
      [text, /is no backup|cut off/],
      [
        manifest('{"schema":"faultline.backup/2","version":"9.0.0"}'),
        /newer Faultline \(9\.0\.0\)/,
      ],
      [join(folder, "none"), /no such file/],
      [archive, /holds \.?\/?duckdb|holds/],
    ];
    for (const [path, message] of cases) {
      const to = join(folder, "to");
      const { status, stderr } = await restore(to, path);
      expect(status, path).toBeGreaterThan(0);
      expect(stderr).toMatch(message);
      expect(stderr.trim().split("\n")).toHaveLength(1);
      expect(existsSync(to) ? readdirSync(to) : []).toEqual([]);
    }
  });
});
