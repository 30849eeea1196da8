/** The npm package as a stranger gets it: packed, installed into an empty folder, run by a user who may not write there. */
import {
  execFile,
  execFileSync,
  spawn,
  type ExecFileSyncOptionsWithStringEncoding,
} from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Verdict } from "../../src/model/verdict.ts";
import { FAULTLINE, ROOT, type Ran } from "../support/cli.ts";
import { until } from "../support/until.ts";

const RECORDING = `${ROOT}fixtures/recordings/hang3.tar.gz`;
const NOBODY = 65_534;
const MOST_PACKED_BYTES = 8e6;
const folder = mkdtempSync(join(tmpdir(), "faultline-package-"));
const installed = join(folder, "node_modules/faultline");
const home = join(folder, "home");
const env = { ...process.env, npm_config_cache: join(folder, "cache"), npm_config_offline: "true" };
const quiet: ExecFileSyncOptionsWithStringEncoding = {
  env,
  encoding: "utf8",
  stdio: ["ignore", "pipe", "pipe"],
};
let tarball = "";

beforeAll(() => {
  // Built before the suite; once more, as `npm pack` does by itself, would write into what other tests run meanwhile.
  execFileSync(FAULTLINE, ["--prepare"], quiet);
  const words = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const packed = execFileSync("npm", words, { ...quiet, cwd: ROOT, maxBuffer: 1 << 26 });
  const [answer] = JSON.parse(packed) as [{ filename: string }];
  tarball = join(folder, answer.filename);
  execFileSync("npm", ["init", "-y"], { ...quiet, cwd: folder });
  // Offline: it has no dependencies.
  execFileSync("npm", ["install", tarball], { ...quiet, cwd: folder });
  // mkdtemp's folders are their owner's alone.
  execFileSync("chmod", ["-R", "a+rX", folder]);
  mkdirSync(home);
  chmodSync(home, 0o777);
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As a user who owns nothing, where the test's own user may become another. */
async function run(...words: string[]): Promise<Ran> {
  const other = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const options = { cwd: folder, env: { PATH: process.env["PATH"], HOME: home }, ...other };
  return await new Promise((resolve) => {
    execFile(join(folder, "node_modules/.bin/faultline"), words, options, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    );
  });
}

function filesOf(at: string): string[] {
  return readdirSync(at, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(at.length + 1))
    .sort();
}

describe("the npm package", () => {
  it("is small, prebuilt, and holds neither tests nor recordings", () => {
    expect(statSync(tarball).size).toBeLessThan(MOST_PACKED_BYTES);
    const files = filesOf(installed);
    expect(files).toContain("dist/cli/main.js");
    expect(files).toContain("LICENSE");
    expect(files.filter((file) => /test|fixture|^src\/|^eval\//.test(file))).toEqual([]);
  });

  it("is built before it is packed", () => {
    const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8")) as {
      scripts: Record<string, string>;
    };
    // What `--prepare` runs, too.
    expect(scripts["prepack"]).toBe("node scripts/build.mjs");
    expect(readFileSync(FAULTLINE, "utf8")).toContain(scripts["prepack"]);
  });

  it("brings no other package with it", () => {
    const there = readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."));
    expect(there).toEqual(["faultline"]);
  });

  it("answers as a user who may not write into it, and leaves it as it was", async () => {
    const before = filesOf(installed).map((file) => statSync(join(installed, file)).mtimeMs);
    const { status, stdout, stderr } = await run("diagnose", RECORDING, "--json");
    expect([status, stderr.split("\n").filter((line) => /error|faultline:/.test(line))]).toEqual([
      0,
      [],
    ]);
    const verdict = JSON.parse(stdout) as Verdict;
    expect([verdict.kind, verdict.suspects[0]?.ranks]).toEqual(["hang", [3]]);
    expect(filesOf(installed).map((file) => statSync(join(installed, file)).mtimeMs)).toEqual(
      before,
    );
  });

  it("serves without DuckDB, with its history in a plain file", async () => {
    const words = ["serve", "--port", "0", "--data", join(home, "data")];
    const child = spawn(join(folder, "node_modules/.bin/faultline"), words, {
      env: { PATH: process.env["PATH"], HOME: home },
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
    try {
      const url = await until(
        () => /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0],
        () => said,
      );
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      await until(() => said.includes("history:"));
      expect(said).toMatch(/history: .*\.jsonl/);
    } finally {
      child.kill();
      await once(child, "exit");
    }
  });

  it("is a library with types", () => {
    writeFileSync(
      join(folder, "use.ts"),
      `import { diagnose, UserError, version, type Suspect, type Verdict } from "faultline";
const verdict: Verdict = await diagnose(${JSON.stringify(RECORDING)}, { onProgress: () => undefined });
const first: Suspect | undefined = verdict.suspects[0];
// @ts-expect-error a verdict has no such field
verdict.culprit;
const failure = await diagnose(["/there/is/none"]).catch((error: unknown) => error);
console.log(JSON.stringify([version, verdict.kind, first?.ranks, failure instanceof UserError && failure.hint !== ""]));
`,
    );
    const words = ["--module", "nodenext", "--target", "es2023", "--strict", "--types", "node"];
    const node = ["--typeRoots", `${ROOT}node_modules/@types`, "--outDir", folder];
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    const tsc = `${ROOT}node_modules/typescript/bin/tsc`;
    execFileSync(process.execPath, [tsc, ...words, ...node, join(folder, "use.ts")], {
      ...quiet,
      cwd: folder,
    });
    const said = execFileSync(process.execPath, [join(folder, "use.js")], quiet);
    expect(JSON.parse(said)).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+/), "hang", [3], true]);
  });
});
