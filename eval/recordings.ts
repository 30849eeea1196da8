/**
 * Every recording of the shared collection, and the code that became slower against its baseline:
 * `npm run eval -- recordings [FOLDER…]`. Prints a table and the counts; exits with 1 when one is wrong. Where the collection
 * (../shared/recordings) is not there, the recordings of this repository are asked instead, and that is said.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { examine, TABLE_HEAD } from "./recordings/examine.ts";
import { truthIn, withoutBaseline } from "./recordings/truth.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const shared = join(root, "../shared/recordings");
const isShared = existsSync(shared);
const given = process.argv.slice(2);
const places = isShared
  ? [shared]
  : [join(root, "fixtures/recordings"), join(root, "fixtures/traces")];

const unpacked = mkdtempSync(join(tmpdir(), "faultline-eval-"));
let right = 0;
let total = 0;

async function ask(...given: Parameters<typeof examine>): Promise<void> {
  const { isRight, row } = await examine(...given);
  total++;
  if (isRight) right++;
  console.log(row);
}

try {
  console.log("## Recordings of real jobs\n");
  console.log(
    given.length > 0
      ? `Of ${given.join(", ")}.\n`
      : isShared
        ? "The shared collection (../shared/recordings), eight NCCL ranks on one H200 each.\n"
        : "The shared collection (../shared/recordings) is not here: these are fixtures/recordings and fixtures/traces, in which three ranks of a job have traces.\n",
  );
  console.log(TABLE_HEAD.join("\n"));
  for (const place of given.length > 0 ? given : places)
    for (const archive of readdirSync(place).filter((name) => name.endsWith(".tar.gz")))
      execFileSync("tar", ["xzf", join(place, archive), "-C", unpacked]);
  for (const name of readdirSync(unpacked).sort()) {
    const folder = join(unpacked, name);
    const truth = truthIn(folder);
    if (!truth) throw new Error(`${name} has no truth beside it`);
    await ask(name, folder, withoutBaseline(truth));
    // "reg-none" is what "reg-sync" is compared with; itself, it must show nothing.
    const [family] = name.split("-");
    const healthy = join(unpacked, `${family}-none`);
    const hasTraces = readdirSync(folder).some((file) => file.startsWith("kineto."));
    if (hasTraces && existsSync(healthy))
      await ask(`${name} against ${family}-none`, folder, truth, [healthy]);
  }
} finally {
  rmSync(unpacked, { recursive: true, force: true });
}
console.log(`\n${right} of ${total} right`);
process.exitCode = right === total && total > 0 ? 0 : 1;
