/** The answer about machines for a tired person: who, since when, what is different, then what was seen at all. */
import { count, cutText, harmless } from "../base/text.ts";
import type { MachineReport } from "../model/machine-report.ts";
import { timeText } from "./machines-document.ts";
import { wrap, type Colours } from "./terminal.ts";

const MOST = 12;
const MOST_LESS = 5;

export function renderMachinesTerminal(
  report: MachineReport,
  colours: Colours,
  width: number,
): string {
  const { bold, red, green, yellow, dim } = colours;
  const { faulty, followers, telemetry, jitter, metrics, missing } = report;
  const lines: string[] = [];
  const line = (text: string): void => void lines.push(cutText(harmless(text), width));
  const seen = metrics.filter(({ coverage }) => coverage > 0);
  if (faulty.length === 0) {
    lines.push(
      seen.length === 0 || report.machines < 2
        ? yellow("nothing to compare")
        : missing.some((text) => text.startsWith("Minder cannot decide"))
          ? yellow("Minder cannot decide with so few machines")
          : green("no machine is unlike its peers"),
    );
  } else {
    const names = faulty.slice(0, 3).map(({ machine }) => machine);
    const more = faulty.length > 3 ? ` and ${faulty.length - 3} more` : "";
    lines.push(
      bold(
        red(
          harmless(
            `${names.join(", ")}${more} ${faulty.length === 1 ? "is" : "are"} unlike ${faulty.length === 1 ? "its" : "their"} peers`,
          ),
        ),
      ),
    );
  }
  for (const one of faulty.slice(0, MOST)) {
    const until = one.untilS === null ? "still" : `until ${clock(one.untilS)}`;
    const first =
      faulty.length > 1
        ? ` · ${one.order === 1 ? "first to deviate" : `no. ${one.order} to deviate`}`
        : "";
    lines.push("");
    line(
      `${one.machine}  score ${one.score.toFixed(2)} · since ${clock(one.sinceS)}, ${until} · against ${one.role}${first}`,
    );
    for (const part of one.why.split("; ")) line(`  ${part}`);
  }
  if (faulty.length > MOST)
    lines.push(dim(`… ${count(faulty.length - MOST, "more machine")} with --json`));
  if (followers.length > 0) {
    lines.push("");
    line(
      `not to blame: ${followers
        .slice(0, MOST_LESS)
        .map(({ machine, after }) => `${machine} (because of ${after})`)
        .join(", ")}${followers.length > MOST_LESS ? ", …" : ""}`,
    );
  }
  if (telemetry.length > 0) {
    lines.push(
      "",
      yellow(
        `${count(telemetry.length, "telemetry fault")} (the monitoring is broken, not the machine)`,
      ),
    );
    for (const one of telemetry.slice(0, MOST_LESS)) line(`  ${one.machine}: ${one.why}`);
  }
  if (jitter.length > 0) {
    const worst = jitter.slice(0, MOST_LESS);
    lines.push(
      "",
      dim(`${count(jitter.length + report.jittersLeftOut, "jitter")} (did not last, no action)`),
    );
    for (const one of worst) {
      lines.push(
        dim(
          cutText(
            harmless(`  ${one.machine} ${clock(one.fromS)}–${clock(one.toS)}: ${one.why}`),
            width,
          ),
        ),
      );
    }
  }
  lines.push("");
  const span = `${timeText(report.fromS)} to ${timeText(report.toS)}`;
  lines.push(
    dim(cutText(`${count(report.machines, "machine")}, ${seen.length} metrics, ${span}`, width)),
  );
  const absent = metrics.filter(({ coverage }) => coverage === 0).map(({ name }) => name);
  if (absent.length > 0) lines.push(dim(cutText(`not recorded: ${absent.join(", ")}`, 2 * width)));
  const joined = report.joined ?? [];
  const [first] = joined;
  if (first)
    lines.push(
      dim(
        cutText(
          harmless(
            `${count(joined.length, "machine")} joined from several names: ${first.machine} = ${first.names.join(", ")} (${first.by.join(", ")})${joined.length > 1 ? ", …" : ""}`,
          ),
          2 * width,
        ),
      ),
    );
  for (const text of missing.slice(0, 6))
    lines.push(...wrap(`missing or odd: ${harmless(text)}`, width).map((part) => dim(part)));
  return lines.join("\n");
}

/** "00:41:02", with the day left to the line below. */
function clock(seconds: number): string {
  return timeText(seconds).slice(11, 19);
}
