/** Completion in the shells themselves. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faultline } from "../support/cli.ts";
import { programPath, unlessThere } from "../support/lacking.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-completion-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const scripts = new Map<string, string>();

beforeAll(async () => {
  writeFileSync(join(folder, "dump.bin"), "");
  for (const shell of ["bash", "zsh", "fish"]) {
    const { stdout, status } = await faultline("completion", shell);
    expect(status).toBe(0);
    scripts.set(shell, join(folder, `faultline.${shell}`));
    writeFileSync(scripts.get(shell)!, stdout);
  }
});

function run(shell: string, code: string): string[] {
  const { stdout, stderr } = spawnSync(shell, ["-c", code], { cwd: folder, encoding: "utf8" });
  expect(stderr).toBe("");
  return stdout.split("\n").filter((line) => line !== "");
}

const lines: [string, (offered: string[]) => void][] = [
  ["faultline di", (offered) => expect(offered).toEqual(["diagnose"])],
  ["faultline diagnose --log", (offered) => expect(offered).toEqual(["--log-baseline"])],
  ["faultline agent du", (offered) => expect(offered).toEqual(["dump"])],
  ["faultline agent dump --sta", (offered) => expect(offered).toEqual(["--stacks"])],
  ["faultline agent --serv", (offered) => expect(offered).toEqual(["--server"])],
];

const noBash = unlessThere(programPath("bash") !== null, "bash", "bash");
describe.skipIf(noBash !== "")(`in bash${noBash}`, () => {
  const offered = (line: string): string[] =>
    run(
      "bash",
      `source ${scripts.get("bash")}; COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _faultline; printf '%s\\n' "\${COMPREPLY[@]}"`,
    );
  it.each(lines)("%s", (line, check) => check(offered(line)));
  it("offers files where a command takes them", () =>
    expect(offered("faultline diagnose du")).toEqual(["dump.bin"]));
});

const noFish = unlessThere(programPath("fish") !== null, "fish", "fish");
describe.skipIf(noFish !== "")(`in fish${noFish}`, () => {
  const offered = (line: string): string[] =>
    run("fish", `source ${scripts.get("fish")}; complete -C '${line}'`).map(
      (one) => one.split("\t")[0]!,
    );
  it.each(lines)("%s", (line, check) => check(offered(line)));
  it("offers files where a command takes them", () =>
    expect(offered("faultline diagnose du")).toEqual(["dump.bin"]));
});

const noZsh = unlessThere(programPath("zsh") !== null, "zsh", "zsh");
describe.skipIf(noZsh !== "")(`in zsh${noZsh}`, () => {
  /** zsh completes only on a terminal; its own functions stand in and print what they are given. */
  const offered = (line: string): string[] => {
    const last = line.split(" ").at(-1)!;
    const stubs = `compdef() { :; }; _files() { print -l *(N); }; compadd() { :; }
      _describe() { local -a all; all=("\${(@P)2}"); print -l -- \${all%%:*}; }`;
    const code = `${stubs}; source ${scripts.get("zsh")}; words=(${line}); CURRENT=$#words; _faultline`;
    return run("zsh", code).filter((one) => one.startsWith(last));
  };
  it.each(lines)("%s", (line, check) => check(offered(line)));
});
