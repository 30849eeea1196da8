import { spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { unlessThere } from "../support/lacking.ts";
import { python, pythonOfTorch } from "./microbatch-job/processes.ts";

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const hasCompiler = spawnSync("gcc", ["--version"], { stdio: "ignore" }).status === 0;
const missing = [
  ...(hasCompiler ? [] : ["gcc"]),
  ...(python === null ? ["python3"] : []),
  ...(pythonOfTorch === null ? ["python3-torch"] : []),
];
const without = (...needs: string[]): string => {
  const lacks = needs.filter((need) => missing.includes(need));
  return unlessThere(lacks.length === 0, lacks.join(", "), lacks.join(" "));
};

let folder = "";
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "faultline-lab-test-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(program: string, words: readonly string[], env: Record<string, string> = {}): string {
  const ran = spawnSync(program, words, {
    encoding: "utf8",
    timeout: 110_000,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...env },
  });
  expect(ran.status, ran.stdout + ran.stderr).toBe(0);
  return ran.stdout;
}

const noWire = without("gcc", "python3");

describe.skipIf(noWire !== "")(`a link that breaks to order${noWire}`, () => {
  it("is dead or slow for one peer, from the trigger on, and loses nothing", () => {
    const library = join(folder, "wire-fault.so");
    const flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"];
    run("gcc", [...flags, "-o", library, at("lab/wire-fault.c"), "-ldl", "-pthread"]);
    const told = JSON.parse(
      run(python!, [at("test/system/lab/link.py"), folder], {
        LD_PRELOAD: library,
        WIRE_FAULT_PID: join(folder, "pid.broken"),
        WIRE_FAULT_TRIGGER: join(folder, "trigger"),
        WIRE_FAULT_HOW: "dead",
      }),
    ) as Record<string, unknown>;
    expect(told).toMatchObject({
      before: [4, 4, 4, 4],
      dead: Array.from({ length: 12 }, () => "again"),
      other: [4, 4, 4, 4],
      held: true,
      blocking: 4,
      after: [4, 4, 4, 4],
      cut: true,
    });
    expect(told["got"]).toEqual(told["sent"]);
    // A bucket cannot be faster than its rate: two megabytes at ten a second, less what it holds.
    expect(told["slowSeconds"]).toBeGreaterThan(0.19);
  });
});

const noPython = without("python3");

describe.skipIf(noPython !== "")(`a copy of rings${noPython}`, () => {
  it("says when it was made and what the process did", () => {
    const source = join(folder, "rings");
    run("mkdir", [source]);
    // The rings of this process, of one that is gone, and of another that has its number now.
    const stat = readFileSync("/proc/self/stat", "latin1");
    const ticks = BigInt(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]!);
    const pids = { alive: process.pid, gone: 0x7ffffff0, reused: process.pid };
    for (const [name, pid] of Object.entries(pids)) {
      const ring = Buffer.alloc(8192);
      ring.write("FLTRING\0", "latin1");
      ring.writeInt32LE(pid, 68);
      ring.writeBigUInt64LE(name === "reused" ? ticks + 1n : ticks, 120);
      ring.writeUInt32LE(7, 5000);
      const file = openSync(join(source, `${name}.ring`), "w");
      writeSync(file, ring);
      closeSync(file);
    }
    const out = join(folder, "copies");
    const before = BigInt(Date.now()) * 1_000_000n;
    const told = JSON.parse(run(python!, [at("lab/snapshot.py"), source, out])) as object;
    expect(told).toMatchObject({ rings: 3 });
    const copies = Object.keys(pids).map((name) =>
      readFileSync(join(out, "rings", `${name}.ring`)),
    );
    for (const copy of copies) {
      expect(copy.length).toBe(8192);
      expect(copy.readUInt32LE(5000)).toBe(7);
      expect(copy.readBigUInt64LE(1536) >= before).toBe(true);
      expect(copy.readBigUInt64LE(1544) <= process.hrtime.bigint()).toBe(true);
    }
    const states = copies.map((copy) => String.fromCodePoint(copy[1552]!));
    expect(states[0]).toMatch(/[RSD]/);
    expect(states.slice(1)).toEqual(["X", "X"]);
  });
});

const noJob = without("gcc", "python3-torch");

describe.skipIf(noJob !== "")(`the job of the lab, on the CPU${noJob}`, () => {
  const small =
    "--backend gloo --tp 1 --dp 2 --pp 2 --micro 2 --layers 1 --hidden 32 --seq 8".split(" ");

  it("trains", () => {
    const out = join(folder, "healthy");
    const line = run(pythonOfTorch!, [at("lab/train.py"), out, ...small, "--steps", "4"]);
    const told = JSON.parse(line) as { codes: number[]; stepMs: number[][] };
    expect(told.codes).toEqual([0, 0, 0, 0]);
    for (const times of told.stepMs) expect(times).toHaveLength(4);
  });

  it("stands still where a link is dead, and leaves nothing behind", () => {
    const pack = join(folder, "wire.tar.gz");
    const how = ["--still", "2", "--limit", "80", "--", ...small];
    const fault = ["--steps", "100000", "--fault", "wire:0-1:dead@3"];
    const line = run(pythonOfTorch!, [at("lab/collect.py"), pack, ...how, ...fault]);
    const told = JSON.parse(line) as { moment: string; steps: number[] };
    expect(told.moment).toBe("yes");
    // The two ends of the link cannot have ended the step that it died in, or the next.
    for (const steps of told.steps.slice(0, 2)) expect([3, 4]).toContain(steps);
    const listed = run("tar", ["tzf", pack]);
    for (const name of ["wire/about/run.json", "wire/about/rank3.log", "wire/rings/"])
      expect(listed.split("\n")).toContain(name);
    for (const rank of [0, 1, 2, 3]) {
      const pid = run("tar", ["xOzf", pack, `wire/about/pid.rank${rank}`]);
      expect(Number(pid)).toBeGreaterThan(1);
      expect(existsSync(`/proc/${pid}`)).toBe(false);
    }
  });
});
