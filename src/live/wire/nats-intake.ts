/** What lies in the stream, checked and handed over: nobody stands for its sender but the subject it came by. */
import { setTimeout as pause } from "node:timers/promises";
import { decodeFrame, FrameError, type PartFrame, type ReportFrame } from "./codec.ts";
import type { Report } from "./messages.ts";
import { LIMITS } from "./messages.ts";
import { messageOf } from "./nats-connect.ts";
import type { AgentBusHandlers } from "./transport.ts";
import { createTroubleReporterByKey, isAhead } from "./trouble.ts";

interface Parts {
  readonly id: number;
  readonly list: Uint8Array[];
  bytes: number;
}

const MOST_TRIES = 3;
const RETRY_MS = 100;
const MOST_SENDERS = 20_000;

/**
 * For one job: each (agent, boot, sequence) is handed over once, in ascending order of the sequence, whatever the
 * stream holds twice. Never rejects.
 */
export function createReportIntake(
  job: string,
  handlers: AgentBusHandlers,
  nowMs: () => number,
  traffic: { reports: number; reportBytes: number; refused: number },
): (subject: string, data: Uint8Array) => Promise<void> {
  const taken = new Map<string, number>();
  const halves = new Map<string, Parts>();
  const tellOf = createTroubleReporterByKey(handlers.onTrouble);

  const refuse = (agent: string, why: string): void => {
    traffic.refused++;
    tellOf(agent, `agent ${agent}: a report was not taken, ${why}`);
  };
  const hand = async (agent: string, { from, sequence, report }: ReportFrame): Promise<void> => {
    if (from?.agent !== agent) return refuse(agent, "it came under another name");
    if (!isOf(job, report)) return refuse(agent, "it came under another job");
    const sender = `${agent} ${from.boot}`;
    if (sequence <= (taken.get(sender) ?? 0)) return;
    if (taken.size > MOST_SENDERS) taken.clear();
    taken.set(sender, sequence);
    if (isAhead(report, nowMs())) return refuse(agent, "its times lie in the future");
    for (let tries = 1; ; tries++) {
      try {
        await handlers.report(from, report);
        return;
      } catch (error) {
        if (tries >= MOST_TRIES) return refuse(agent, messageOf(error));
        await pause(RETRY_MS);
      }
    }
  };
  /** Parts of one report lie one after the other: another beginning ends what was there before. */
  const join = (agent: string, { id, index, parts, bytes }: PartFrame): Uint8Array | null => {
    let half = halves.get(agent);
    if (index === 0) {
      half = { id, list: [], bytes: 0 };
      halves.set(agent, half);
    }
    if (half === undefined || half.id !== id) return null;
    // Told twice, or its beginning lies before what we follow.
    if (half.list.length !== index) return null;
    half.list.push(new Uint8Array(bytes));
    half.bytes += bytes.length;
    if (half.list.length < parts && half.bytes <= LIMITS.reportBytes) return null;
    halves.delete(agent);
    return Buffer.concat(half.list);
  };

  return async (subject, data) => {
    const agent = subject.split(".").at(-1) ?? "";
    traffic.reportBytes += data.length;
    let frame = decodeFrame(data);
    if (!(frame instanceof FrameError) && frame.type === "part") {
      const whole = join(agent, frame);
      if (whole === null) return;
      frame = decodeFrame(whole);
    }
    traffic.reports++;
    if (frame instanceof FrameError) refuse(agent, frame.message);
    else if (frame.type !== "report") refuse(agent, "it is none");
    else await hand(agent, frame);
  };
}

function isOf(job: string, report: Report): boolean {
  if (report.kind === "beat") return report.jobs.every((one) => one.job === job);
  return report.job === job;
}
