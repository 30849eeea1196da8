/** The digest of some days for a message or a wiki. */
import { harmless } from "../base/text.ts";
import type { Digest, Share } from "../model/digest.ts";

const HOUR_MS = 3_600_000;

export function digestMarkdown(digest: Digest): string {
  const { fromMs, toMs, incidents, wastedGpuMs, judged, isCut } = digest;
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  const lines = [
    `# Faultline, ${day(fromMs)} to ${day(toMs)}`,
    "",
    `${incidents} ${incidents === 1 ? "incident" : "incidents"}, ${hours(wastedGpuMs)} lost${isCut ? " (the newest incidents only)" : ""}.`,
    ...table("By cause", digest.byCause),
    ...table("By machine", digest.byMachine),
    ...table("Broke again", digest.repeated),
  ];
  const all = judged.right + judged.wrong;
  if (all > 0) lines.push("", `Of ${all} answers that people judged, ${judged.right} were right.`);
  return `${lines.join("\n")}\n`;
}

function table(title: string, shares: readonly Share[]): string[] {
  if (shares.length === 0) return [];
  const rows = shares.map(
    ({ name, incidents, wastedGpuMs }) =>
      `| ${cell(name)} | ${incidents} | ${hours(wastedGpuMs)} |`,
  );
  return ["", `| ${title} | incidents | lost |`, "|---|---:|---:|", ...rows];
}

function hours(gpuMs: number): string {
  return `${(gpuMs / HOUR_MS).toFixed(1)} GPU hours`;
}

/** Names are strangers'. */
function cell(text: string): string {
  return harmless(text.slice(0, 200)).replace(/[|<>[\]`*_\\]/g, "\\$&");
}
