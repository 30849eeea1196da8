/** One machine beside its peers, for the terminal. */
import { amount } from "../base/amount.ts";
import { count, cutText, harmless } from "../base/text.ts";
import type { ExplainedMetric, MachineExplanation } from "../model/machine-explanation.ts";
import { wrap, type Colours } from "./terminal.ts";

const HEADS = ["metric", "this machine", "its peers (10 to 90 %)", "every", "seen"];
const ORDINARY = "as its peers";

export function renderExplanation(
  explanation: MachineExplanation,
  { bold, dim, red }: Colours,
  width: number,
): string {
  const { machine, role, peers, names, metrics, leftOut } = explanation;
  const lines = [bold(harmless(`${machine}, beside ${count(peers, "peer")} (${role})`))];
  const say = (text: string): void => void lines.push(...wrap(harmless(text), width));
  if (names) say(`also called ${names.names.join(", ")} (joined by ${names.by.join(", ")})`);
  else lines.push("has one name");
  if (names?.isPod)
    say("only an exporter's pod is known: kubectl get pod -o wide shows its machine");
  const rows = metrics.map(rowOf);
  const widths = HEADS.map((head, c) =>
    Math.max(head.length, ...rows.map((row) => row[c]!.length)),
  );
  const line = (cells: readonly string[]): string =>
    cutText(
      harmless(
        cells
          .map((cell, c) => cell.padEnd(widths[c]!))
          .join("  ")
          .trimEnd(),
      ),
      width,
    );
  lines.push("", dim(line(HEADS)));
  metrics.forEach(({ found }, i) => {
    lines.push(line(rows[i]!));
    if (found === ORDINARY) return;
    const said = wrap(harmless(`  ${found}`), width);
    lines.push(...said.map((text) => (found.startsWith("unlike") ? red(text) : dim(text))));
  });
  if (leftOut.length > 0) lines.push("", "left out:");
  for (const { what, why } of leftOut) say(`  ${what}: ${why}`);
  return lines.join("\n");
}

function rowOf(one: ExplainedMetric): string[] {
  const { title, unit, value, peers, intervalS, coverage } = one;
  return [
    title,
    value === null ? "–" : amount(value, unit),
    peers === null
      ? "–"
      : `${amount(peers.middle, unit)} (${amount(peers.low, unit)} to ${amount(peers.high, unit)})`,
    `${Math.round(intervalS * 10) / 10} s`,
    `${Math.round(100 * coverage)} %`,
  ];
}
