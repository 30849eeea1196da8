/**
 * Python stacks of processes without our probe, taken from outside by py-spy where it is installed. It only reads the
 * process' memory (--nonblocking): nothing is stopped, and a process that is stopped can be read as well.
 */
import { execFile } from "node:child_process";

const AT_ONCE = 8;
const MOST_PROCESSES = 64;
const MOST_BYTES = 1 << 20;

export interface OutsideStacks {
  readonly files: readonly { readonly name: string; readonly bytes: Buffer }[];
  readonly troubles: readonly string[];
}

export async function outsideStacks(
  ranks: readonly { readonly rank: number; readonly pid: number }[],
  limitMs: number,
  program = "py-spy",
): Promise<OutsideStacks> {
  const files: { name: string; bytes: Buffer }[] = [];
  const troubles = new Set<string>();
  const asked = ranks.slice(0, MOST_PROCESSES);
  const until = performance.now() + limitMs;
  for (let from = 0; from < asked.length; from += AT_ONCE) {
    const leftMs = until - performance.now();
    if (leftMs <= 0) {
      troubles.add(`stacks: no time for rank ${asked[from]!.rank} and those behind it`);
      break;
    }
    await Promise.all(
      asked.slice(from, from + AT_ONCE).map(async ({ rank, pid }) => {
        const { text, trouble } = await dumpOf(pid, program, leftMs);
        if (text !== "") files.push({ name: `rank${rank}.py-spy.txt`, bytes: Buffer.from(text) });
        else if (trouble === "ENOENT")
          troubles.add("stacks: neither the Python probe nor py-spy is there to take them");
        else troubles.add(`rank ${rank} (process ${pid}): py-spy: ${trouble}`);
      }),
    );
  }
  files.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { files, troubles: [...troubles] };
}

function dumpOf(
  pid: number,
  program: string,
  timeout: number,
): Promise<{ readonly text: string; readonly trouble: string }> {
  const options = {
    timeout: Math.ceil(timeout),
    maxBuffer: MOST_BYTES,
    killSignal: "SIGKILL",
  } as const;
  return new Promise((resolve) => {
    execFile(
      program,
      ["dump", "--nonblocking", "--pid", String(pid)],
      options,
      (error, out, said) => {
        if (error === null) resolve({ text: out, trouble: "" });
        else if (error.code === ("ENOENT" as never)) resolve({ text: "", trouble: "ENOENT" });
        else resolve({ text: "", trouble: said.trim().split("\n").at(-1) || error.message });
      },
    );
  });
}
