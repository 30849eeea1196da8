/** Progress on stderr: a line that redraws itself on a terminal, a line now and then elsewhere. */
import type { Env } from "../model/job.ts";
import type { Io, Screen } from "./io.ts";

export interface Progress {
  update(what: string, done: number, total: number): void;
  end(): void;
}

const QUIET: Progress = { update: () => undefined, end: () => undefined };
const FIRST_MS = 400;
const REDRAW_MS = 100;
const PLAIN_MS = 5000;

export function makeProgress(stream: Screen, quiet: boolean, now: () => number): Progress {
  if (quiet) return QUIET;
  const started = now();
  // The first plain line comes after as long a wait as the next: short runs stay silent in scripts.
  let last = stream.isTTY ? started - PLAIN_MS : started;
  let drawn = false;
  let written = "";
  return {
    update(what, done, total) {
      const time = now();
      // Short work needs no progress.
      if (time - started < FIRST_MS) return;
      if (time - last < (stream.isTTY ? REDRAW_MS : PLAIN_MS)) return;
      last = time;
      if (!stream.isTTY) {
        stream.write(`${what} ${done}/${total}\n`);
        written = what;
        return;
      }
      const full = total > 0 ? Math.round((24 * done) / total) : 0;
      stream.write(
        `\r\x1b[K${what} [${"#".repeat(full)}${"-".repeat(24 - full)}] ${done}/${total}`,
      );
      drawn = true;
    },
    end() {
      if (drawn) stream.write("\r\x1b[K");
      // The last line of a script's log must not look like work that stopped in the middle.
      if (written !== "") stream.write(`${written}: done\n`);
    },
  };
}

/** What a command hands down; `done` takes the progress line away. */
export function progressEnv(io: Io, quiet: boolean): { env: Env; done: () => void } {
  const progress = makeProgress(io.err, quiet, () => performance.now());
  const env: Env = {
    signal: new AbortController().signal,
    progress: (...at) => progress.update(...at),
  };
  return { env, done: () => progress.end() };
}
