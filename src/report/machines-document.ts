/** The document of `machines --json`; its names are fixed by the contract, the rest is added. */
import type { Deviation, MachineReport } from "../model/machine-report.ts";
import type { Verdict } from "../model/verdict.ts";

export function machinesDocument(
  report: MachineReport,
  first: Verdict | undefined,
): Record<string, unknown> {
  return {
    schema: "faultline.machines/1",
    ...(first ? { summary: first.summary, actions: first.actions } : {}),
    method: report.method,
    machines: report.machines,
    from: timeText(report.fromS),
    to: timeText(report.toS),
    metrics: report.metrics,
    faulty: report.faulty.map((faulty) => ({
      machine: faulty.machine,
      metric: faulty.metric,
      score: faulty.score,
      since: timeText(faulty.sinceS),
      until: faulty.untilS === null ? null : timeText(faulty.untilS),
      role: faulty.role,
      order: faulty.order,
      why: faulty.why,
      deviations: faulty.deviations.map(deviationOf),
    })),
    followers: report.followers.map(({ sinceS, ...one }) => ({ ...one, since: timeText(sinceS) })),
    telemetry: report.telemetry.map(({ sinceS, untilS, ...one }) => ({
      ...one,
      since: timeText(sinceS),
      until: untilS === null ? null : timeText(untilS),
    })),
    jitter: report.jitter.map(({ fromS, toS, ...one }) => ({
      ...one,
      from: timeText(fromS),
      to: timeText(toS),
    })),
    jittersLeftOut: report.jittersLeftOut,
    phases: report.phases.map(({ what, fromS, toS }) => ({
      what,
      from: timeText(fromS),
      to: timeText(toS),
    })),
    joined: report.joined ?? [],
    missing: report.missing,
  };
}

function deviationOf({
  fromS,
  toS,
  value,
  peers,
  sigmas,
  ...one
}: Deviation): Record<string, unknown> {
  return {
    ...one,
    from: timeText(fromS),
    to: timeText(toS),
    value: figure(value),
    peers: figure(peers),
    sigmas: Number.isFinite(sigmas) ? figure(sigmas) : null,
  };
}

function figure(value: number): number | null {
  return Number.isFinite(value) ? Number(value.toPrecision(5)) : null;
}

/** Tables without dates count from 1970: still a time, and sorted. */
export function timeText(seconds: number): string {
  const date = new Date(Math.round(1000 * seconds));
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString();
}
