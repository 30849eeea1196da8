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
import { archivesIn } from "./recordings/archives.ts";
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

/** One line: the document says of it what was asked. */
const asked =
  given.length > 0
    ? given.join(", ")
    : isShared
      ? "the shared collection (../shared/recordings), eight NCCL ranks on one H200 each"
      : "fixtures/recordings and fixtures/traces, in which three ranks of a job have traces; the shared collection (../shared/recordings) is not here";

try {
  const archives = (given.length > 0 ? given : places).flatMap((place) => archivesIn(place));
  for (const archive of archives) unpack(archive);
  console.log(`## Recordings of real jobs\n\nAsked: ${asked}.\n`);
  console.log(TABLE_HEAD.join("\n"));
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
  console.log(`\n${right} of ${total} right`);
  process.exitCode = right === total ? 0 : 1;
} catch (error) {
  console.error(`eval recordings: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
} finally {
  rmSync(unpacked, { recursive: true, force: true });
}

function unpack(archive: string): void {
  try {
    execFileSync("tar", ["xzf", archive, "-C", unpacked], { stdio: "ignore" });
  } catch {
    throw new Error(`${archive} cannot be unpacked`);
  }
}
