/** Errors that mean nothing: each was seen in healthy jobs, in masses. */
import { hash } from "../../../src/simulate/cluster/noise.ts";
import { SITE, type RankFile } from "../../../src/simulate/emit/logs/rank-file.ts";
import type { StormKind } from "./scenario.ts";

/** One occurrence in a rank's own log; storms of the kernel are in kernel-lines.ts. */
export function writeStormLine(file: RankFile, kind: StormKind, atNs: number, seed: number): void {
  const n = hash(seed, file.rank, Math.floor(atNs / 1e6), 0x57);
  switch (kind) {
    case "connection-retry":
      file.nccl(
        `socketStartConnect: Connect to 10.1.${n % 32}.${n % 251}<${30_000 + (n % 20_000)}> failed : Connection refused, retrying`,
      );
      break;
    case "name-lookup":
      // c10d tries IPv6 first and says so in every process.
      file.plain(
        `[W${String(1101)} ${file.stamp(atNs).slice(11)}.${String(n % 1e9).padStart(9, "0")} socket.cpp:464] [c10d] The IPv6 network addresses of (${file.host}, 29500) cannot be retrieved (gai error: -2 - Name or service not known).`,
      );
      break;
    case "upload-retry":
      file.info(
        atNs,
        `checkpoint upload: part ${n % 512} failed: Connection reset by peer, retry ${1 + (n % 3)}/8 in ${2 ** (1 + (n % 3))}.0 s`,
        "ERROR",
      );
      break;
    case "tracker-retry":
      file.plain("wandb: Network error (ReadTimeout), entering retry loop.");
      break;
    case "skipped-sample":
      file.info(
        atNs,
        `skipping sample ${n % 4_000_000} of shard ${n % 977}: cannot be decoded`,
        "WARNING",
      );
      for (const line of [
        "Traceback (most recent call last):",
        '  File "/srv/job/data/reader.py", line 212, in decode',
        '    text = raw.decode("utf-8")',
        `UnicodeDecodeError: 'utf-8' codec can't decode byte 0x${(128 + (n % 100)).toString(16)} in position ${n % 9000}: invalid start byte`,
      ])
        file.plain(line);
      break;
    case "corrected-memory":
    case "corrected-pcie":
      break;
  }
}

/** Single harmless warnings that any rank prints now and then, beside the chatter of the emitter. */
export function writeBackground(
  file: RankFile,
  iteration: number,
  atNs: number,
  seed: number,
): void {
  const u = hash(seed, file.rank, iteration, 0xb9) / 2 ** 32;
  if (u > 0.004) return;
  switch (hash(seed, file.rank, iteration, 0xba) % 4) {
    case 0:
      file.plain(
        `${SITE}/torch/distributed/c10d_logger.py:83: FutureWarning: barrier(): using the device under current context. You can specify device_id in init_process_group to mute this warning.`,
      );
      break;
    case 1:
      writeStormLine(file, "tracker-retry", atNs, seed);
      break;
    case 2:
      writeStormLine(file, "upload-retry", atNs, seed);
      break;
    default:
      file.info(
        atNs,
        `slow step: waited ${(0.2 + 60 * u).toFixed(2)} s for the data queue`,
        "WARNING",
      );
  }
}
