/**
 * Who hung, crashed or slowed the job? Recordings with a truth beside them, ours and others', from where they lie:
 * `npm run eval -- hangs [FOLDER…]` (default: fixtures/recordings, and ../shared/thirdparty where it exists; the shared
 * collection is the topic "recordings"). Prints a table and the counts; exits with 1 when one is wrong.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { examine, rowOf, TABLE_HEAD } from "./recordings/examine.ts";
import { truthIn, withoutBaseline } from "./recordings/truth.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

function* foldersWithTruth(folder: string): Generator<string> {
  if (truthIn(folder)) yield folder;
  else
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) yield* foldersWithTruth(path);
    }
}

const given = process.argv.slice(2);
const places =
  given.length > 0
    ? given
    : [join(root, "fixtures/recordings"), join(root, "../shared/thirdparty")];
const unpacked = mkdtempSync(join(tmpdir(), "faultline-eval-"));
let right = 0;
let total = 0;
try {
  console.log("## Hangs, crashes and slow-downs of this repository, and public incidents\n");
  for (const missing of places.filter((path) => !existsSync(path)))
    console.log(`${missing.slice(missing.startsWith(root) ? root.length : 0)} is not here.\n`);
  console.log(TABLE_HEAD.join("\n"));
  for (const place of places.filter((path) => existsSync(path))) {
    for (const archive of readdirSync(place).filter((name) =>
      /^(hang|gpuhang|kill|stop|mismatch|oom|nan|raise|slow|reg).*\.tar\.gz$/.test(name),
    )) {
      const to = mkdtempSync(join(unpacked, "case-"));
      execFileSync("tar", ["xzf", join(place, archive), "-C", to]);
      for (const folder of foldersWithTruth(to)) {
        const name = folder.slice(to.length + 1) || archive;
        const one = await examine(name, folder, withoutBaseline(truthIn(folder)!));
        total++;
        if (one.judged.right) right++;
        console.log(rowOf(one));
      }
    }
  }
} finally {
  rmSync(unpacked, { recursive: true, force: true });
}
console.log(`\n${right} of ${total} right`);
// Nothing asked is nothing right: a folder that is not there must not pass.
process.exitCode = right === total && total > 0 ? 0 : 1;
