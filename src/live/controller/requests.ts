/** What clients may send: checked here, so that nothing behind it sees junk. */
import { fits, type IterationReport, type JobShape } from "./allocation.ts";
import { Refusal } from "./jobs.ts";

/** Names that are safe in a path, a log line and a terminal. As in faultline_microbatches.py. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function nameOf(text: string, what: string): string {
  if (!NAME.test(text))
    throw new Refusal(
      400,
      `the ${what}'s name must be 1 to 64 letters, digits, dots, - or _, the first a letter or digit`,
    );
  return text;
}

export function runOf(value: unknown): string {
  if (value === undefined || value === null || value === "") return "";
  return nameOf(typeof value === "string" ? value : "?", "run");
}

export function iterationOf(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new Refusal(400, "the iteration must be a whole number from 0");
}

/** `{"iteration": 7, "counts": [4, 4], "seconds": [0.8, null], "run": "a1"}` */
export function reportOf(text: string, shape: JobShape): { run: string; report: IterationReport } {
  const body = jsonObject(text);
  const { counts, seconds } = body;
  const iteration = iterationOf(body["iteration"]);
  const run = runOf(body["run"]);
  if (!Array.isArray(counts) || !fits(counts as number[], shape)) {
    const { groups, total, multipleOf } = shape;
    const multiples = multipleOf === 1 ? "" : ` in multiples of ${multipleOf}`;
    throw new Refusal(400, `counts must share out ${total} to ${groups} replicas${multiples}`);
  }
  if (!Array.isArray(seconds) || seconds.length !== shape.groups)
    throw new Refusal(400, `seconds must be ${shape.groups} numbers, or null where unknown`);
  // A time that is no time is not the request's fault: the replica could not measure.
  const known = seconds.map((s: unknown) => (typeof s === "number" && s > 0 ? s : null));
  return { run, report: { iteration, counts: counts as number[], seconds: known } };
}

function jsonObject(
  text: string,
): Record<string, unknown> & { counts?: unknown; seconds?: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refusal(400, "the body is no JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Refusal(400, "the body must be a JSON object");
  return value as Record<string, unknown>;
}
