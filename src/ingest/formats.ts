/** Every format we read, in the order in which they are tried: the strict before the lenient. */
import { flightRecorder } from "./flight-recorder/reader.ts";
import { ncclDebugLog } from "./nccl-debug-log.ts";
import { ncclRasJson } from "./nccl-ras-json.ts";
import { ncclRasText } from "./nccl-ras-text.ts";
import { pythonStacks } from "./python-stacks.ts";
import { rankLog } from "./rank-log.ts";
import type { Head, Reader } from "./reader.ts";

export const READERS: readonly Reader[] = [
  flightRecorder,
  ncclRasJson,
  ncclRasText,
  pythonStacks,
  ncclDebugLog,
  rankLog,
];

export function recognise(head: Head): Reader | null {
  return READERS.find((reader) => reader.sniff(head)) ?? null;
}
