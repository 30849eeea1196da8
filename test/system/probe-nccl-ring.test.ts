/** The native probe's ring: its layout, how it is made, lives and ends, and the trap in it. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  COMMUNICATOR,
  CONNECTION,
  FLAG,
  HEADER,
  RECORD,
} from "../../src/ingest/probe-ring/layout.ts";
import { build, folder, hasCompiler, printedBy } from "./probe-nccl/build.ts";
import { drive, freshFolder, ringOf, start } from "./probe-nccl/drive.ts";
import { ringsIn } from "./probe-nccl/ring.ts";
import { until } from "../support/until.ts";
import { unlessThere } from "../support/lacking.ts";
import { longTest } from "../support/cases.ts";

const why = unlessThere(hasCompiler, "C compiler", "gcc make");
const isRoot = process.getuid?.() === 0;

describe.skipIf(!hasCompiler)(`the ring's layout${why}`, () => {
  const offsets = (type: string, fields: readonly string[]): number[] =>
    JSON.parse(
      printedBy(`#include <stddef.h>\n#include <stdio.h>\n#include "ring.h"
        int main(void) {
          size_t at[] = {${fields.map((field) => `offsetof(${type}, ${field})`).join(", ")}};
          for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) printf("%s%zu", i == 0 ? "[" : ",", at[i]);
          puts("]");
          return 0;
        }`),
    ) as number[];

  it.each([
    ["FlHeader", HEADER],
    ["FlRecord", RECORD],
    ["FlComm", COMMUNICATOR],
    ["FlConnection", CONNECTION],
  ] as const)("of %s is the same in C and in TypeScript", (type, layout) => {
    const fields = Object.keys(layout).filter((key) => key !== "nameBytes" && key !== "stateCount");
    const expected = Object.fromEntries(
      Object.entries(layout).filter(([key]) => fields.includes(key)),
    );
    const found = offsets(type, fields);
    expect(Object.fromEntries(fields.map((field, i) => [field, found[i]]))).toEqual(expected);
  });

  it("of the header is the one that is written down", () => {
    const page = readFileSync(new URL("../../probe/RING.md", import.meta.url), "utf8");
    const header = page.slice(page.indexOf("## Header"), page.indexOf("## A trap"));
    const rows = [...header.matchAll(/^\| (\d+(?:, \d+)*) \|/gm)].flatMap((row) =>
      row[1]!.split(", ").map(Number),
    );
    expect(rows.toSorted((a, b) => a - b)).toEqual(Object.values(HEADER).toSorted((a, b) => a - b));
  });
});

describe.skipIf(!hasCompiler)(`records${why}`, () => {
  longTest("keep two writers of one slot apart", () => {
    const ring = ringOf(["protocol"], { FAULTLINE_RECORDS: "1" });
    expect(ring.u32("recordCount")).toBe(64);
  });

  it("are whole or not taken, however fast they are overwritten", () => {
    const ring = ringOf(["hammer"], { FAULTLINE_RECORDS: "64" });
    expect(ring.u64("head")).toBe(6_000_000n);
  });
});

describe.skipIf(!hasCompiler)(`the life of a ring${why}`, () => {
  it("gives the child of a fork a ring of its own", () => {
    const rings = freshFolder();
    const run = drive(rings, ["fork", 5]);
    expect(run).toMatchObject({ status: 0, stderr: "" });
    const { parent, child } = JSON.parse(run.stdout) as { parent: number; child: number };
    const found = new Map(ringsIn(rings).map((ring) => [ring.u32("pid"), ring]));
    expect([...found.keys()].toSorted((a, b) => a - b)).toEqual(
      [parent, child].toSorted((a, b) => a - b),
    );
    expect(found.get(parent)!.records.map(({ func, b }) => [func, b])).toEqual(
      [1, 2, 3, 4].map((b) => [1, b]),
    );
    expect(found.get(parent)!.comms.map(({ name }) => name)).toEqual(["parent"]);
    expect(found.get(parent)!.ended).toEqual({ how: 1, code: 0 });
    expect(found.get(child)!.records.map(({ func, b }) => [func, b])).toEqual(
      [1, 2].map((b) => [4, b]),
    );
    expect(found.get(child)!.comms.map(({ name }) => name)).toEqual(["child"]);
    expect(found.get(child)!.ended).toEqual({ how: 1, code: 7 });
    expect(found.get(child)!.connections).toHaveLength(2);
  });

  it("replaces the ring of the same process from before an exec", () => {
    const ring = ringOf(["exec", 5]);
    expect(ring.ended).toEqual({ how: 1, code: 0 });
    expect(ring.records).toHaveLength(8);
  });

  it("keeps two processes of one job and one rank apart", async () => {
    const { rings } = await start(["hang", 5], { RANK: "0" });
    expect(drive(rings, ["scene", 5], { RANK: "0" })).toMatchObject({ status: 0, stderr: "" });
    expect(
      ringsIn(rings)
        .map((ring) => ring.records.length)
        .toSorted((a, b) => a - b),
    ).toEqual([8, 11]);
  });

  it("notes how the process ended", () => {
    let rings = freshFolder();
    expect(drive(rings, ["exit", 5, 3]).status).toBe(3);
    expect(ringsIn(rings)[0]!.ended).toEqual({ how: 1, code: 3 });

    rings = freshFolder();
    const crashed = drive(rings, ["signal", 5, 11]);
    expect(crashed.signal).toBe("SIGSEGV");
    expect(ringsIn(rings)[0]).toMatchObject({
      ended: { how: 3, code: 11 },
      words: "SIGSEGV at 0x10",
    });

    rings = freshFolder();
    const ended = drive(rings, ["signal", 5, 15]);
    expect(ended.signal).toBe("SIGTERM");
    const [ring] = ringsIn(rings);
    expect(ring!.ended).toEqual({ how: 3, code: 15 });
    expect(ring!.words).toBe(
      `SIGTERM from process ${ring!.u32("pid")} of user ${process.getuid!()}`,
    );
  });

  it("leaves signals to whoever handles them", () => {
    let rings = freshFolder();
    expect(drive(rings, ["handled", 5, 15]).status).toBe(42);
    expect(ringsIn(rings)[0]!.ended).toEqual({ how: 0, code: 0 });

    rings = freshFolder();
    expect(drive(rings, ["signal", 5, 15], { FAULTLINE_SIGNALS: "0" }).signal).toBe("SIGTERM");
    expect(ringsIn(rings)[0]!.ended).toEqual({ how: 0, code: 0 });
  });

  const canUnshare = spawnSync("unshare", ["--pid", "--fork", "true"]).status === 0;
  it.skipIf(!canUnshare)(
    "takes a signal that passes by process 1 for no end (skipped where there may be no other)",
    () => {
      const { driver, library } = build("driver");
      const rings = freshFolder();
      const run = spawnSync("unshare", ["--pid", "--fork", driver, library, "passed-by", "5"], {
        encoding: "utf8",
        env: { PATH: process.env["PATH"], FAULTLINE_DIR: rings, FAULTLINE_RECORDS: "1024" },
      });
      expect(run).toMatchObject({ status: 0, stdout: '{"pid":1}\n', stderr: "" });
      expect(ringsIn(rings)[0]!.ended).toEqual({ how: 1, code: 0 });
    },
  );

  it("keeps no process whose main thread and all others have left", () => {
    const rings = freshFolder();
    const run = drive(rings, ["main-leaves", 5]);
    expect(run).toMatchObject({ status: 0, signal: null, stdout: '{"finished":true}\n' });
    expect(ringsIn(rings)[0]!.ended).toEqual({ how: 1, code: 0 });
  });

  // To nothing, to a part of the header, to the header alone, and to nothing and back.
  it.each([[0], [100], [4096], [0, 400_000]])(
    "harms nobody when its file is truncated to %j",
    async (...sizes) => {
      const { child, lines, rings } = await start(["request", 5], { FAULTLINE_RECORDS: "64" });
      const { file } = ringsIn(rings)[0]!;
      for (const size of sizes) truncateSync(file, size);
      child.stdin.write("1".repeat(200));
      await until(() => lines.length === 201);
      const ended = once(child, "close");
      // The thread of the heartbeat, too, comes by.
      await pause(1100);
      child.stdin.end();
      expect(await ended).toEqual([0, null]);
    },
  );

  it("still dies of a SIGBUS that is not the ring's", () => {
    const rings = freshFolder();
    expect(drive(rings, ["signal", 5, 7]).signal).toBe("SIGBUS");
    const [ring] = ringsIn(rings);
    expect(ring!.ended).toEqual({ how: 3, code: 7 });
    expect(ring!.words).toBe(
      `SIGBUS from process ${ring!.u32("pid")} of user ${process.getuid!()}`,
    );
  });

  it("is made where a pipe lies in its place", () => {
    const { driver, library } = build("driver");
    const rings = freshFolder();
    mkdirSync(rings, { mode: 0o700 });
    const script = `mkfifo "$FAULTLINE_DIR/job.rx.$$.native.ring"; exec "${driver}" "${library}" scene 5`;
    const run = spawnSync("sh", ["-c", script], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], FAULTLINE_DIR: rings },
      timeout: 100_000,
    });
    expect(run).toMatchObject({ status: 0, signal: null, stderr: "" });
    expect(ringsIn(rings)[0]!.records).toHaveLength(8);
  });

  it("removes what dead processes of the job and rank left long ago, and nothing else", () => {
    const rings = freshFolder();
    mkdirSync(rings, { mode: 0o700 });
    const dead = spawnSync("true").pid;
    const old = new Date(Date.now() - 2 * 86_400_000);
    const leave = (name: string, isOld: boolean): string => {
      writeFileSync(join(rings, name), "");
      if (isOld) utimesSync(join(rings, name), old, old);
      return name;
    };
    leave(`job.r0.${dead}.native.ring`, true);
    leave(`job.r0.${dead}.python.ring.stacks`, true);
    const kept = [
      leave(`job.r0.${dead}.python.ring`, false),
      leave(`job.r0.${process.pid}.native.ring`, true),
      leave(`job.r1.${dead}.native.ring`, true),
      leave(`other.r0.${dead}.native.ring`, true),
      leave("job.r0.notes", true),
    ];
    expect(drive(rings, ["scene", 5], { RANK: "0" }).status).toBe(0);
    const now = readdirSync(rings);
    expect(now).toEqual(expect.arrayContaining(kept));
    expect(now).toHaveLength(kept.length + 1);
  });
});

describe.skipIf(!hasCompiler)(`without a ring the job goes on${why}`, () => {
  /** The job ends well, NCCL is asked for no events, and the reason is said once. */
  function goesOn(
    rings: string,
    mode: string,
    reason: RegExp | null,
    more: Readonly<Record<string, string>> = {},
  ): void {
    const run = drive(rings, [mode, 5], more);
    expect(run).toMatchObject({ status: 0, signal: null, stdout: '{"mask":0}\n' });
    if (reason === null) expect(run.stderr).toBe("");
    else
      expect(run.stderr).toMatch(
        new RegExp(`^faultline: .*${reason.source}.*the job goes on without the probe\n$`),
      );
  }

  it("where it is switched off", () => {
    const rings = freshFolder();
    goesOn(rings, "none", null, { FAULTLINE: "0" });
    expect(existsSync(rings)).toBe(false);
  });

  it("where the folder cannot be made", () => {
    const rings = freshFolder();
    goesOn(rings, "none", /No such file or directory/, {
      FAULTLINE_DIR: join(rings, "deeper", "still"),
    });
    writeFileSync(rings, "");
    goesOn(rings, "none", /is a link or no folder/);
  });

  it("where the folder is a link", () => {
    const rings = freshFolder();
    mkdirSync(rings);
    symlinkSync(rings, `${rings}-link`);
    goesOn(rings, "none", /is a link or no folder/, { FAULTLINE_DIR: `${rings}-link` });
    expect(readdirSync(rings)).toEqual([]);
  });

  it("where the folder is another user's", () => {
    const rings = freshFolder();
    mkdirSync(rings);
    if (isRoot) chownSync(rings, 12_345, 12_345);
    goesOn(rings, "none", /belongs to another user/, { FAULTLINE_DIR: isRoot ? rings : "/usr" });
    expect(readdirSync(rings)).toEqual([]);
  });

  it("where others may write into the folder, unless they may remove nothing there", () => {
    const rings = freshFolder();
    mkdirSync(rings);
    chmodSync(rings, 0o770);
    goesOn(rings, "none", /others may write into the folder/);
    expect(readdirSync(rings)).toEqual([]);
    chmodSync(rings, 0o1777);
    expect(drive(rings, ["scene", 5])).toMatchObject({ status: 0, stderr: "" });
  });

  it.skipIf(isRoot)("where it may not write (skipped for root, who may)", () => {
    const rings = freshFolder();
    mkdirSync(rings, { mode: 0o500 });
    goesOn(rings, "none", /Permission denied/);
  });

  it("where files may not grow", () => {
    const rings = freshFolder();
    goesOn(rings, "limit", /File too large/, { FAULTLINE_RECORDS: "65536" });
    expect(readdirSync(rings)).toEqual([]);
  });

  /** Runs it with a small file system of its own; false where nothing may be mounted. */
  function inSmallRoom(size: string, what: (room: string) => void): boolean {
    const room = mkdtempSync(join(folder, "room-"));
    const options = ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", room];
    if (spawnSync("mount", options).status !== 0) return false;
    try {
      what(room);
      return true;
    } finally {
      spawnSync("umount", [room]);
    }
  }
  const canMount = inSmallRoom("64k", () => undefined);
  const unlessMounted = "(skipped where nothing may be mounted)";

  it.skipIf(!canMount)(`where the file system is full ${unlessMounted}`, () => {
    inSmallRoom("256k", (room) => {
      const rings = join(room, "rings");
      goesOn(rings, "none", /No space left on device/);
      expect(readdirSync(rings)).toEqual([]);
    });
  });

  it.skipIf(!canMount)(`and a ring is modest where there is little room ${unlessMounted}`, () => {
    inSmallRoom("16m", (room) => {
      expect(drive(join(room, "rings"), ["scene", 5], { FAULTLINE_RECORDS: "" }).status).toBe(0);
      const [ring] = ringsIn(join(room, "rings"));
      expect(ring!.u32("recordCount")).toBe(8192);
      expect(ring!.bytes.length).toBeLessThan(2 ** 20);
    });
  });
});

describe.skipIf(!hasCompiler)(`the trap${why}`, () => {
  const FOR_EVER = 2n ** 63n;

  function set(rings: string, field: "trapUntilNs" | "trapFromTicket", value: bigint): void {
    const word = Buffer.alloc(8);
    word.writeBigUInt64LE(value);
    const file = openSync(ringsIn(rings)[0]!.file, "r+");
    writeSync(file, word, 0, 8, HEADER[field]);
    closeSync(file);
  }

  it.each([4, 5])("holds calls until they are released, version %i", async (version) => {
    const { child, lines, rings } = await start(["request", version]);
    child.stdin.write("1");
    await until(() => lines.length === 2);

    set(rings, "trapUntilNs", FOR_EVER);
    child.stdin.write("1");
    await until(() => ringsIn(rings)[0]!.u64("trappedNow") === 1n);
    expect(lines).toHaveLength(2);
    expect(ringsIn(rings)[0]!.records).toHaveLength(1);

    set(rings, "trapUntilNs", 0n);
    await until(() => lines.length === 3);
    const ring = ringsIn(rings)[0]!;
    expect([ring.u64("trappedNow"), ring.u64("trappedCalls")]).toEqual([0n, 1n]);
    expect(ring.records.map(({ flags }) => flags & FLAG.held)).toEqual([0, FLAG.held]);
  });

  it("lets calls pass that come before the ticket that it waits for", async () => {
    const { child, lines, rings } = await start(["request", 5]);
    set(rings, "trapFromTicket", 2n);
    set(rings, "trapUntilNs", FOR_EVER);
    child.stdin.write("111");
    await until(() => ringsIn(rings)[0]!.u64("trappedNow") === 1n);
    expect(ringsIn(rings)[0]!.records.map(({ flags }) => flags & FLAG.held)).toEqual([0, 0]);
    set(rings, "trapUntilNs", 0n);
    await until(() => lines.length === 4);
  });

  it("opens by itself when whoever set it is gone, and stays open", async () => {
    const { child, lines, rings } = await start(["request", 5], { FAULTLINE_TRAP_MAX_MS: "50" });
    set(rings, "trapUntilNs", FOR_EVER);
    child.stdin.write("111");
    await until(() => lines.length === 4);
    const ring = ringsIn(rings)[0]!;
    expect([ring.u64("trappedNow"), ring.u64("trappedCalls")]).toEqual([0n, 1n]);
    expect(ring.records.map(({ flags }) => flags & FLAG.held)).toEqual([FLAG.held, 0, 0]);
  });

  it("is over when its time is", async () => {
    const { child, lines, rings } = await start(["request", 5]);
    set(rings, "trapUntilNs", 1n);
    child.stdin.write("1");
    await until(() => lines.length === 2);
    expect(ringsIn(rings)[0]!.u64("trappedCalls")).toBe(0n);
  });
});
