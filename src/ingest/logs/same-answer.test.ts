/** Same input, same answer: whoever reads which file, and however often. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { few } from "../../../test/support/cases.ts";
import { randomInt, seeded } from "../../base/random.ts";
import { readLogs } from "./read-logs.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-same-answer-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * A job's files, of which each writes the same forms in numbers of other widths: what a line's front means can be told
 * from some of them only, so that it matters which line of a form is read first.
 */
function writeJob(files: number, steps: number): string[] {
  return Array.from({ length: files }, (_, file) => {
    const random = seeded(100 + file);
    const number = (): string => String(randomInt(random, 10 ** (1 + randomInt(random, 5))));
    const lines: string[] = [];
    for (let step = 1; step <= steps; step++) {
      const at = `2026-05-20 08:${String(step % 60).padStart(2, "0")}:${String(file).padStart(2, "0")}`;
      const time = file % 2 === 0 ? at : `${number()}-${number()}-${number()} 8:0:${number()}`;
      lines.push(
        `[${time}] [INFO] [train.py:${number()}:run] [Rank ${file}] step=${step}, loss=${number()}`,
        `${time} node${number()} agentd[${number()}]: heartbeat ${number()}`,
        `[E${number()} 8:${number()}:9.${number()} watch.cpp:${number()}] [Rank ${number()}] timeout`,
        ` [${at}] iteration ${String(step).padStart(file + 2)}/  500 | loss: ${number()}E+00 |`,
        `${number()}: slow read of shard ${number()}`,
        `NVRM: Xid (PCI:0000:${number()}:00): ${number()}, pid=${number()}`,
      );
      if (step % 9 === file % 9)
        lines.push("Traceback (most recent call last):", `RuntimeError: lost sample ${number()}`);
    }
    const path = join(folder, `rank-${file}.log`);
    writeFileSync(path, `${lines.join("\n")}\n`);
    return path;
  });
}

test("any number of threads, and a second reading, give the same bytes of JSON", async () => {
  const paths = writeJob(12, 60);
  const read = async (workers: number): Promise<string> =>
    JSON.stringify(await readLogs(paths, { workers, taskBytes: 9000 }));
  const one = await read(0);
  expect(JSON.parse(one)).toMatchObject({ files: { length: 12 } });
  for (const workers of few([4, 2, 1, 0, 4, 2], 2)) expect(await read(workers)).toBe(one);
}, 120_000);
