/** NCCL's RAS, asked where a job's processes say it listens: its answer as a file, or why there is none. */
import { readEnvironment } from "../process-state.ts";
import { askRas, RAS_PORT, rasAddress, type RasOptions } from "./ras-client.ts";
import type { SlowStorage } from "./slow-storage.ts";

export interface RasFile {
  readonly file: { readonly name: string; readonly bytes: Buffer } | null;
  readonly trouble: string | null;
}

/** "host:port", as the environment of one of the processes says. */
export async function rasWords(
  pids: readonly number[],
  storage: SlowStorage,
  proc = "/proc",
): Promise<string> {
  for (const pid of pids) {
    const words = pid > 0 ? await readEnvironment(pid, storage, proc) : null;
    const address = words?.get("NCCL_RAS_ADDR");
    if (address) return address;
  }
  return process.env["NCCL_RAS_ADDR"] || `localhost:${RAS_PORT}`;
}

export async function rasAnswerAt(
  words: string,
  limits: Omit<RasOptions, "host" | "port"> = {},
): Promise<RasFile> {
  const address = rasAddress(words);
  if (address === null)
    return { file: null, trouble: `RAS: ${words} is no address; give HOST:PORT` };
  try {
    const { format, bytes, defect } = await askRas({ ...address, ...limits });
    const trouble = defect === null ? null : `RAS at ${words}: ${defect}; what came is kept`;
    return { file: { name: format === "json" ? "ras.json" : "ras.txt", bytes }, trouble };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === "ECONNREFUSED"
        ? "nothing listens there (NCCL 2.24 and later, NCCL_RAS_ENABLE=1)"
        : message;
    return { file: null, trouble: `RAS at ${words}: ${why}` };
  }
}

/** Within some time, whatever the other side does. */
export async function rasAnswer(
  pids: readonly number[],
  storage: SlowStorage,
  proc: string,
  limitMs: number,
): Promise<RasFile> {
  const words = await rasWords(pids, storage, proc);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<RasFile>((resolve) => {
    const trouble = `RAS at ${words}: no answer within ${limitMs / 1000} s`;
    timer = setTimeout(() => resolve({ file: null, trouble }), limitMs);
  });
  const limits = { handshakeMs: limitMs / 3, answerMs: limitMs };
  const answer = await Promise.race([rasAnswerAt(words, limits), late]);
  clearTimeout(timer);
  return answer;
}
