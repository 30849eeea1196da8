/** What a user sets once: the environment, the configuration file, and which of them wins. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { faultlineIn, type Ran } from "./support/cli.ts";

const home = mkdtempSync(join(tmpdir(), "faultline-settings-"));
const file = join(home, ".config/faultline/config.json");
mkdirSync(join(home, ".config/faultline"), { recursive: true });
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** `plan microbatches` shows its options in its answer. */
async function plan(
  config: unknown,
  env: Readonly<Record<string, string>>,
  ...words: string[]
): Promise<Ran> {
  if (config === null) rmSync(file, { force: true });
  else writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
  return await faultlineIn({ env: { HOME: home, ...env } }, "plan", "microbatches", ...words);
}

const makespan = ({ stdout }: Ran): number =>
  (JSON.parse(stdout) as { allocation: number[] }).allocation.reduce((sum, n) => sum + n, 0);

describe("options that are set once", () => {
  const config = { "plan microbatches": { times: "1,1", total: 8, json: true } };

  it("come from the file, then from the environment, then from the command line", async () => {
    expect(makespan(await plan(config, {}))).toBe(8);
    const variable = { FAULTLINE_PLAN_MICROBATCHES_TOTAL: "6" };
    expect(makespan(await plan(config, variable))).toBe(6);
    expect(makespan(await plan(config, variable, "--total", "4"))).toBe(4);
    const all = { ...variable, FAULTLINE_PLAN_MICROBATCHES_TIMES: "1,1" };
    expect(makespan(await plan(null, { ...all, FAULTLINE_PLAN_MICROBATCHES_JSON: "1" }))).toBe(6);
  });

  it("come from XDG_CONFIG_HOME or FAULTLINE_CONFIG, and from nowhere where that is empty", async () => {
    const elsewhere = join(home, "other.json");
    writeFileSync(elsewhere, JSON.stringify({ "plan microbatches": { total: 2 } }));
    const words = ["--times", "1,1", "--json"];
    expect(makespan(await plan(config, { FAULTLINE_CONFIG: elsewhere }, ...words))).toBe(2);
    expect((await plan(config, { FAULTLINE_CONFIG: "" }, ...words)).status).toBe(2);
    expect((await plan(config, { XDG_CONFIG_HOME: join(home, "none") }, ...words)).status).toBe(2);
  });

  it("of a file that FAULTLINE_CONFIG names and that is not there are an error", async () => {
    const { status, stderr } = await plan(config, { FAULTLINE_CONFIG: join(home, "gone.json") });
    expect(status).toBe(2);
    expect(stderr).toContain("gone.json: there is no such file");
  });

  it("are taken back by a flag of the environment that is 0", async () => {
    for (const off of ["0", "false"]) {
      const { stdout } = await plan(config, { FAULTLINE_PLAN_MICROBATCHES_JSON: off });
      expect(stdout).not.toContain('"allocation"');
    }
  });

  it("replace a list of the file, and do not add to it", async () => {
    const absent = { diagnose: { baseline: ["/nothing/there"], quiet: true } };
    writeFileSync(file, JSON.stringify(absent));
    const env = { HOME: home };
    const { stdout } = await faultlineIn({ env }, "diagnose", "--help");
    expect(stdout).toMatch(/default:\s+set by/);
    const { stderr } = await faultlineIn({ env }, "diagnose", "/also/nothing", "--baseline", "/b");
    expect(stderr).not.toContain("/nothing/there");
  });

  it.each([
    ["{", /is not JSON/],
    [{ diagnoze: {} }, /no command "diagnoze"/],
    [{ diagnose: { stor: "x" } }, /"diagnose" has no option "stor"/],
    [{ diagnose: { quiet: "yes" } }, /must be true or false/],
    [{ "plan microbatches": { total: "many" } }, /whole number/],
    [{ serve: [] }, /one object per command/],
  ])("are checked: %j", async (bad, says) => {
    const { status, stderr } = await plan(bad, {}, "--times", "1,1", "--total", "4");
    expect([status, stderr.trim().split("\n")]).toEqual([2, [expect.stringMatching(says)]]);
    expect(stderr).toContain("config.json");
  });
});

describe("faultline --version", () => {
  it("names version and formats, for people and for programs", async () => {
    const people = await faultlineIn({ env: {} }, "--version");
    expect(people.stdout).toMatch(/^faultline \S+ \(.*Node\.js [\d.]+\)\nreads: .*flight-recorder/);
    const { stdout } = await faultlineIn({ env: {} }, "--version", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      formats: expect.arrayContaining(["kineto", "rank-log"]) as unknown,
    });
  });
});
