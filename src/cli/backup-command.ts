/** Options and help of `faultline backup` and `faultline restore`. */
import type { Command } from "commander";
import type { BackupFlags } from "./backup.ts";
import type { Io } from "./io.ts";
import type { RestoreFlags } from "./restore.ts";

export function addBackup(io: Io, program: Command, setStatus: (status: number) => void): void {
  common(program.command("backup"))
    .description("copy the data folder of faultline serve into one file, while it runs or not")
    .option("--history <file>", "the DuckDB file, if serve has --history")
    .requiredOption("--out <file>", "file name that ends in .tar.gz")
    .addHelpText("after", BACKUP_EXAMPLES)
    .action(async (flags: BackupFlags) => {
      const { runBackup } = await import("./backup.ts");
      setStatus(await runBackup(io, flags, program.version() ?? ""));
    });
}

export function addRestore(io: Io, program: Command, setStatus: (status: number) => void): void {
  common(program.command("restore"))
    .description("make the data folder of faultline serve from a backup")
    .argument("<file>", "what faultline backup has written")
    .addHelpText("after", RESTORE_EXAMPLES)
    .action(async (file: string, flags: RestoreFlags) => {
      const { runRestore } = await import("./restore.ts");
      setStatus(await runRestore(io, file, flags));
    });
}

function common(command: Command): Command {
  return command
    .option("--data <dir>", "data folder (default ~/.local/share/faultline)")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--quiet", "print nothing");
}

const BACKUP_EXAMPLES = `
The file holds incidents, iteration times, the audit trail, pictures and evidence, all of the history as of one moment. It
holds no configuration, no tokens and no key: read-only links made before are void after a restore. A history in
ClickHouse is backed up with ClickHouse's own tools.

Examples:
  faultline backup --out faultline.tar.gz
  faultline backup --data /var/lib/faultline --out /backup/faultline-$(date +%F).tar.gz`;

const RESTORE_EXAMPLES = `
The folder must not hold a history: move it away first. If the restore is interrupted, faultline serve refuses the folder
until it is run again.

Example:
  faultline restore --data /var/lib/faultline faultline.tar.gz`;
