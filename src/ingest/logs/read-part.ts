/** One task: the parts of files that one thread reads in one go. */
import { readGzip, readPart } from "./files.ts";
import type { PartialDigest } from "./partial-digest.ts";
import type { Part } from "./plan-parts.ts";
import { LogEngine, type ScanOptions } from "./scanner.ts";

export async function readTask(
  parts: readonly Part[],
  options: ScanOptions,
  onBytes: (bytes: number) => void,
): Promise<PartialDigest> {
  const engine = new LogEngine(options);
  for (const { file, path, from, to, isGzip, about } of parts) {
    engine.begin(file, about);
    const push = (chunk: Uint8Array): void => {
      engine.push(chunk);
      if (!isGzip) onBytes(chunk.length);
    };
    const defects = await (isGzip ? readGzip(path, push) : readPart(path, from, to, push));
    if (isGzip) onBytes(to);
    engine.end(defects);
  }
  return engine.digest();
}
