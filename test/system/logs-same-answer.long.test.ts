/** Same input, same answer: whoever reads which file, and however often. Threads need the built command. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomInt, seeded } from "../../src/base/random.ts";

const FAULTLINE = fileURLToPath(new URL("../../faultline", import.meta.url));
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-same-answer-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * A job's files, of which each writes the same forms in numbers of other widths: what a line's front means can be told
 * from some of them only, so that it matters which line of a form is read first.
 */
function writeJob(files: number, steps: number): void {
  for (let file = 0; file < files; file++) {
    const random = seeded(100 + file);
    const number = (): string => String(randomInt(random, 10 ** (1 + randomInt(random, 5))));
    const lines: string[] = [];
    for (let step = 1; step <= steps; step++) {
      const at = `2026-05-20 08:${String(step % 60).padStart(2, "0")}:${String(file).padStart(2, "0")}`;
      const time = file % 2 === 0 ? at : `${number()}-${number()}-${number()} 8:0:${number()}`;
      lines.push(
        `[${time}] [INFO] [train.py:${number()}:run] [Rank ${file}] step=${step}, loss=${number()}`,
        `${time} node${number()} agentd[${number()}]: heartbeat ${number()}`,
        ` [${at}] iteration ${String(step).padStart(file + 2)}/  500 | loss: ${number()}E+00 |`,
        `${number()}: slow read of shard ${number()}`,
        `NVRM: Xid (PCI:0000:${number()}:00): ${number()}, pid=${number()}`,
      );
      if (step % 9 === file % 9)
        lines.push("Traceback (most recent call last):", `RuntimeError: lost sample ${number()}`);
    }
    writeFileSync(join(folder, `rank-${file}.log`), `${lines.join("\n")}\n`);
  }
}

test("any number of threads, and a second reading, give the same bytes of JSON", () => {
  writeJob(12, 200);
  const read = (workers: number): string =>
    execFileSync(FAULTLINE, ["logs", folder, "--json", "--workers", String(workers)], {
      encoding: "utf8",
    });
  const one = read(1);
  expect(JSON.parse(one)).toMatchObject({ files: 12 });
  for (const workers of [2, 4, 1]) expect(read(workers)).toBe(one);
}, 120_000);
