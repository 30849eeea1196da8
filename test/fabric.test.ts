/** A switch that is slow is named by whatever describes the network; without it only NICs can be. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Verdict } from "../src/model/verdict.ts";
import { faultline } from "./support/cli.ts";
import { longTest } from "./support/cases.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-fabric-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let leaves: [leaf: string, nics: readonly string[]][] = [];

beforeAll(async () => {
  const shape = ["--gpus", "32", "--tp", "4", "--pp", "2", "--gpus-per-machine", "4"];
  const fault = ["--fault", "network-slow:switch=leaf1:from=10:severity=4", "--iterations", "24"];
  const out = ["--out", folder, "--emit", "operators,logs", "--quiet"];
  await faultline("simulate", ...out, ...shape, ...fault);
  const path = join(folder, "job.json");
  const job = JSON.parse(readFileSync(path, "utf8")) as {
    network?: { leaves: Record<string, string[]> };
    ranks: { nic?: string }[];
  };
  leaves = Object.entries(job.network!.leaves);
  delete job.network;
  for (const rank of job.ranks) delete rank.nic;
  writeFileSync(path, JSON.stringify(job));
}, 60_000);

async function verdict(file: string, content: string): Promise<Verdict> {
  writeFileSync(join(folder, file), content);
  const { stdout } = await faultline("diagnose", folder, "--json", "--quiet");
  rmSync(join(folder, file));
  return JSON.parse(stdout) as Verdict;
}

it("a table of machines, NICs and switches is enough", async () => {
  const rows = leaves.flatMap(([leaf, nics]) =>
    nics.map((nic) => `${nic.replace("/", ",")},${leaf}`),
  );
  const { suspects, summary, inputs } = await verdict(
    "fabric.csv",
    `machine,nic,leaf\n${rows.join("\n")}\n`,
  );
  expect(suspects[0]).toMatchObject({ type: "switch", name: "leaf1" });
  expect(summary).toMatch(/^Switch leaf1 \(ranks .*\) is slow/);
  expect(JSON.stringify(inputs)).toContain("fabric-table");
}, 60_000);

longTest(
  "so is what iblinkinfo prints",
  async () => {
    const lines = leaves.flatMap(([leaf, nics], k) => [
      `Switch: 0xb83fd2030001c0${k}0 MF0;${leaf}:MQM9700/U1:`,
      ...nics.map((nic, port) => {
        const [machine, name] = nic.split("/");
        return `   ${k}   ${port + 1}[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  ${10 + port}    1[  ] "${machine} ${name}" ( )`;
      }),
    ]);
    const { suspects } = await verdict("links.txt", `${lines.join("\n")}\n`);
    expect(suspects[0]).toMatchObject({ type: "switch", name: "leaf1" });
  },
  60_000,
);

it("without any, no switch is accused", async () => {
  const { suspects } = await verdict("note.csv", "");
  expect(suspects.some(({ type }) => type === "switch")).toBe(false);
}, 60_000);
