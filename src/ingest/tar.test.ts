import { gzipSync } from "node:zlib";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { quietEnv } from "../../test/support/in-memory.ts";
import { ingest } from "./ingest.ts";
import { findFiles, openFile } from "./sources.ts";
import { looksLikeTar, tarMembers } from "./tar.ts";

const MODIFIED_MS = Date.UTC(2026, 10, 16, 10);

function tarFile(name: string, content: Uint8Array, type = "0"): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000644\0", 100);
  header.write(content.length.toString(8).padStart(11, "0") + "\0", 124);
  header.write(`${(MODIFIED_MS / 1000).toString(8)}\0`, 136);
  header.write("        ", 148);
  header.write(type, 156);
  header.write("ustar\u000000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(sum.toString(8).padStart(6, "0") + "\0 ", 148);
  const padding = Buffer.alloc((512 - (content.length % 512)) % 512);
  return Buffer.concat([header, content, padding]);
}

const END = Buffer.alloc(1024);
const LONG = `${"deep/".repeat(30)}rank_7`;
const archive = Buffer.concat([
  tarFile("a.log", Buffer.from("alpha\n")),
  tarFile("folder/", Buffer.alloc(0), "5"),
  tarFile("empty", Buffer.alloc(0)),
  tarFile("./._a.log", Buffer.alloc(9)),
  tarFile("././@LongLink", Buffer.from(`${LONG}\0`), "L"),
  tarFile("cut-name", Buffer.alloc(3000, 7)),
  END,
]);

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function members(bytes: Buffer, size: number, readAll = true): Promise<[string, number][]> {
  const found: [string, number][] = [];
  const defects: string[] = [];
  for await (const member of tarMembers(inChunks(bytes, size), (what) => defects.push(what))) {
    let length = 0;
    if (readAll) for await (const chunk of member.chunks) length += chunk.length;
    found.push([member.name, length]);
  }
  for (const defect of defects) found.push([defect, -1]);
  return found;
}

describe("a tar archive", () => {
  const whole: [string, number][] = [
    ["a.log", 6],
    ["empty", 0],
    ["./._a.log", 9],
    [LONG, 3000],
  ];
  it("gives its files whatever the size of the chunks", async () => {
    expect(looksLikeTar(archive)).toBe(true);
    for (const size of [1, 2, 3, 7, 64, 513, archive.length]) {
      expect(await members(archive, size)).toEqual(whole);
    }
  });

  it("skips what a reader leaves unread", async () => {
    const names = (await members(archive, 100, false)).map(([name]) => name);
    expect(names).toEqual(whole.map(([name]) => name));
  });

  it("may follow another, and what fills a tape behind it is no defect", async () => {
    const more = Buffer.concat([tarFile("b.log", Buffer.from("beta\n")), END]);
    const both: [string, number][] = [...whole, ["b.log", 5]];
    for (const size of [1, 512, 100_000]) {
      expect(await members(Buffer.concat([archive, more]), size)).toEqual(both);
      const filled = Buffer.concat([archive, END, more, Buffer.alloc(700, 0xee)]);
      expect(await members(filled, size)).toEqual(both);
    }
  });

  it("that is cut or damaged ends with a defect, not an exception", async () => {
    const cut = await members(archive.subarray(0, archive.length - 2600), 64);
    expect(cut.at(-1)).toEqual([expect.stringContaining("cut off inside"), -1]);
    await fc.assert(
      fc.asyncProperty(fc.nat(archive.length - 1), fc.nat(255), async (at, byte) => {
        const bytes = Buffer.from(archive);
        bytes[at] = byte;
        await members(bytes.subarray(0, at + 700), 300);
      }),
      { numRuns: 200, seed: 4 },
    );
  });
});

describe("files of a job", () => {
  const folder = mkdtempSync(join(tmpdir(), "faultline-sources-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "sub/node_modules"), { recursive: true });
  writeFileSync(join(folder, "job.tar.gz"), gzipSync(archive));
  writeFileSync(join(folder, "sub/plain.log"), "one\ntwo\n");
  writeFileSync(join(folder, "sub/node_modules/noise.log"), "noise");
  writeFileSync(join(folder, "cut.log.gz"), gzipSync(Buffer.alloc(100_000, 65)).subarray(0, 60));

  it("are found once, sorted, without the folders of tools", async () => {
    const found = await findFiles([folder, join(folder, "sub/plain.log")]);
    expect(found.map(({ path }) => path.slice(folder.length + 1))).toEqual([
      "cut.log.gz",
      "job.tar.gz",
      "sub/plain.log",
    ]);
  });

  it("are none of those that are hidden or that a report of Faultline's consists of", async () => {
    const evidence = join(folder, "evidence");
    mkdirSync(join(evidence, "report"), { recursive: true });
    for (const name of ["report.html", "verdict.json", "ticket.md", "picture.json", "other.log"])
      writeFileSync(join(evidence, "report", name), "x\n");
    for (const name of ["verdict.json", "ticket.md", ".confirmed"])
      writeFileSync(join(evidence, name), "x\n");
    const under = async (path: string): Promise<string[]> =>
      (await findFiles([path])).map((found) => found.path.slice(evidence.length + 1));
    expect(await under(evidence)).toEqual(["report/other.log", "ticket.md", "verdict.json"]);
    expect(await under(join(evidence, ".confirmed"))).toEqual([".confirmed"]);
    rmSync(evidence, { recursive: true });
  });

  it("inside an archive are as old as it says, and log lines without a year are of that year", async () => {
    const line = "[rank0]:[W1116 09:26:40.031589450 Utils.hpp:137] Warning: shard 7 is corrupt\n";
    const path = join(folder, "dated.tar");
    writeFileSync(path, Buffer.concat([tarFile("rank0.log", Buffer.from(line)), END]));
    const { logDigest } = await ingest([path], quietEnv);
    expect(logDigest!.streams[0]!.firstMs).toBe(Date.UTC(2026, 10, 16, 9, 26, 40, 31));
    rmSync(path);
  });

  it("inside a compressed archive become files of their own", async () => {
    const seen: string[] = [];
    await openFile(
      join(folder, "job.tar.gz"),
      async (file) => {
        let size = 0;
        for await (const chunk of file.chunks) size += chunk.length;
        seen.push(`${file.path.slice(folder.length + 1, folder.length + 20)} ${size}`);
      },
      () => expect.unreachable(),
    );
    expect(seen).toEqual(["job.tar.gz/a.log 6", "job.tar.gz/empty 0", "job.tar.gz/deep/dee 3000"]);
  });

  it("that are cut off are read as far as they go, and named", async () => {
    const defects: string[] = [];
    let size = 0;
    await openFile(
      join(folder, "cut.log.gz"),
      async (file) => {
        for await (const chunk of file.chunks) size += chunk.length;
      },
      (defect) => defects.push(defect.what),
    );
    expect(defects).toEqual([expect.stringContaining("damaged or cut off")]);
    expect(size).toBeGreaterThan(0);
  });

  it("that are not there are an error the user can mend", async () => {
    await expect(findFiles([join(folder, "nowhere")])).rejects.toMatchObject({ exitCode: 3 });
  });
});
