/** Logs inside archives, and those among a job's other files: streamed by one thread, a file after the other. */
import { shippedMatchers } from "../../library/shipped.ts";
import type { Env } from "../../model/job.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import { looksLikeLog } from "../rank-log/sniff.ts";
import { findFiles, openFile, type SourceFile } from "../sources.ts";
import { unreadable } from "./files.ts";
import { mergeDigests } from "./merge-digests.ts";
import { LogEngine } from "./scanner.ts";
import { narrowed, wideEncoding } from "./wide-text.ts";

export interface ArchiveOptions {
  readonly isTelling?: (text: string) => boolean;
  /** Which of the files inside; those that look like logs by default. */
  readonly isWanted?: (file: SourceFile) => boolean;
}

export async function digestOfSources(
  paths: readonly string[],
  env: Env,
  options: ArchiveOptions = {},
): Promise<LogDigest> {
  const matchers = options.isTelling ? null : shippedMatchers();
  const isTelling = options.isTelling ?? ((text: string) => matchers!.couldMatch(text));
  const isWanted = options.isWanted ?? (({ head }) => looksLikeLog(textOf(head.bytes), head.name));
  const engine = new LogEngine({ isTelling });
  const names: string[] = [];
  const defects = await unreadable(paths);
  const files = await findFiles(paths);
  for (const [done, { path }] of files.entries()) {
    env.signal.throwIfAborted();
    env.progress("reading logs", done, files.length);
    await openFile(
      path,
      async (file) => {
        if (!isWanted(file)) return;
        engine.begin(names.push(file.path) - 1);
        for await (const chunk of file.chunks) engine.push(chunk);
        engine.end();
      },
      ({ file, what }) => defects.push(`${file}: ${what}`),
    );
  }
  env.progress("reading logs", files.length, files.length);
  const digest = mergeDigests(names, [engine.digest()]);
  return { ...digest, missing: [...defects, ...digest.missing] };
}

function textOf(head: Uint8Array): string {
  const encoding = wideEncoding(head);
  return (encoding ? narrowed(head, encoding) : Buffer.from(head)).toString("latin1");
}
