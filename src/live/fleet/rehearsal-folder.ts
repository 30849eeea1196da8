/** Where the rings of a rehearsal lie: a folder of its own, removed at its end, or by the next where it was killed. */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const OURS = /^faultline-rehearsal-(\d+)-/;

export function makeRehearsalFolder(below: string): string {
  for (const name of readdirSync(below)) {
    const pid = Number(OURS.exec(name)?.[1] ?? NaN);
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    const path = join(below, name);
    try {
      if (statSync(path).uid === process.getuid?.()) rmSync(path, { recursive: true, force: true });
    } catch {
      // Somebody else was faster.
    }
  }
  return mkdtempSync(join(below, `faultline-rehearsal-${process.pid}-`));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
