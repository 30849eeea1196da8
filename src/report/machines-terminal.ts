/** The answer about machines for a tired person: who, since when, what is different, then what was seen at all. */
import { capital, count, cutText, harmless } from "../base/text.ts";
import type { MachineReport } from "../model/machine-report.ts";
import type { Verdict } from "../model/verdict.ts";
import { actionTitle } from "./action-words.ts";
import { timeText } from "./machines-document.ts";
import { wrap, type Colours } from "./terminal.ts";

const MOST = 12;
const MOST_LESS = 5;
const MOST_ACTIONS = 2;

export function renderMachinesTerminal(
  report: MachineReport,
  colours: Colours,
  width: number,
  first?: Verdict,
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
    const headline = first?.answer
      ? capital(`${first.answer.who} ${first.answer.what}`) + besideWords(faulty.length - 1)
      : `${names.join(", ")}${more} ${faulty.length === 1 ? "is unlike its" : "are unlike their"} peers`;
    lines.push(...wrap(harmless(headline), width).map((text) => bold(red(text))));
    for (const action of (first?.actions ?? []).slice(0, MOST_ACTIONS)) {
      const { why, command } = action;
      lines.push(
        ...wrap(
          `${actionTitle(action)}: ${harmless(why)}${command === undefined ? "" : `: ${command}`}`,
          width,
        ),
      );
    }
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
    const said = [...new Set(telemetry.map(({ machine, why }) => `${machine}: ${why}`))];
    for (const text of said.slice(0, MOST_LESS))
      lines.push(...wrap(harmless(text), width - 2).map((part) => `  ${part}`));
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
  const [one] = joined;
  if (one)
    lines.push(
      dim(
        cutText(
          harmless(
            `${count(joined.length, "machine")} joined from several names: ${one.machine} = ${one.names.join(", ")} (${one.by.join(", ")})${joined.length > 1 ? ", …" : ""}`,
          ),
          2 * width,
        ),
      ),
    );
  for (const text of missing.slice(0, 6))
    lines.push(...wrap(`missing or odd: ${harmless(text)}`, width).map((part) => dim(part)));
  return lines.join("\n");
}

function besideWords(others: number): string {
  if (others === 0) return "";
  return `; ${count(others, "more machine")} ${others === 1 ? "is unlike its" : "are unlike their"} peers`;
}

/** "00:41:02", with the day left to the line below. */
function clock(seconds: number): string {
  return timeText(seconds).slice(11, 19);
}
