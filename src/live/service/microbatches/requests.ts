/** What clients may send: checked here, so that nothing behind it sees junk. */
import { UserError } from "../../../base/errors.ts";
import { NAME } from "../../wire/messages.ts";
import { evenAllocation, fits, type IterationReport, type JobShape } from "./allocation.ts";
import { Refusal } from "../view.ts";
import type { Jobs, Plan } from "./jobs.ts";

/** As agents name jobs, and as in faultline_microbatches.py. */
export function nameOf(text: string, what: string): string {
  if (!NAME.test(text))
    throw new Refusal(
      400,
      `the ${what}'s name must be 1 to 64 letters, digits, - or _, the first a letter or digit`,
    );
  return text;
}

function runOf(value: unknown): string {
  if (value === undefined || value === null || value === "") return "";
  return nameOf(typeof value === "string" ? value : "?", "run");
}

function iterationOf(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new Refusal(400, "the iteration must be a whole number from 0");
}

/** What a job wants to know or says. Plain data, for another service may have to answer it. */
export type Question =
  | { readonly ask: "plan"; readonly query: string }
  | { readonly ask: "report"; readonly body: unknown }
  | { readonly ask: "state" };

/** Throws Refusal. `fixed`: the shape of all jobs, where the controller was started with one. */
export function answerJob(
  jobs: Pick<Jobs, "plan" | "report" | "state">,
  job: string,
  question: Question,
  fixed: JobShape | null,
): unknown {
  const name = nameOf(job, "job");
  if (question.ask === "plan") return answerPlan(jobs, name, question.query, fixed);
  if (question.ask === "report") return answerReport(jobs, name, question.body, fixed);
  return jobs.state(name);
}

/** The same for a service that asks for one of its jobs: nothing is thrown. */
export function answerText(jobs: Jobs, job: string, text: string): string {
  try {
    const answer = answerJob(jobs, job, JSON.parse(text) as Question, null);
    return JSON.stringify({ answer });
  } catch (error) {
    const { status, message } =
      error instanceof Refusal ? error : new Refusal(500, "internal error");
    return JSON.stringify({ status, message });
  }
}

/** What another service answered. Throws its Refusal. */
export function readAnswer(text: string): unknown {
  const { answer, status, message } = JSON.parse(text) as Record<string, unknown>;
  if (typeof status === "number") throw new Refusal(status, String(message));
  return answer;
}

/** Reports of so many replicas fit into a body. */
export const MOST_GROUPS = 32_768;

function answerPlan(
  jobs: Pick<Jobs, "plan">,
  job: string,
  query: string,
  fixed: JobShape | null,
): Plan {
  const asked = new URLSearchParams(query);
  const number = (name: string): number | undefined => {
    const text = asked.get(name);
    return text === null || text === "" ? undefined : Number(text);
  };
  const iteration = asked.get("iteration") ?? "";
  if (!/^\d{1,15}$/.test(iteration)) iterationOf(iteration);
  const shape = shapeOf(
    {
      groups: number("replicas"),
      total: number("total"),
      multipleOf: number("multipleOf"),
      bubble: number("bubble"),
    },
    fixed,
  );
  const run = runOf(asked.get("run"));
  checkRun(run, fixed);
  return jobs.plan(job, run, Number(iteration), shape);
}

/** `{"iteration": 7, "counts": [4, 4], "seconds": [0.8, null], "run": "a1", "multipleOf": 1, "bubble": 0}` */
function answerReport(
  jobs: Pick<Jobs, "report">,
  job: string,
  body: unknown,
  fixed: JobShape | null,
): { readonly iteration: number } {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new Refusal(400, "the body must be a JSON object");
  const { counts, seconds, multipleOf, bubble, ...said } = body as Record<string, unknown> & {
    counts?: unknown;
    seconds?: unknown;
    multipleOf?: unknown;
    bubble?: unknown;
  };
  const iteration = iterationOf(said["iteration"]);
  const run = runOf(said["run"]);
  checkRun(run, fixed);
  const isList = Array.isArray(counts) && counts.every((m: unknown) => typeof m === "number");
  const told = isList
    ? { groups: counts.length, total: counts.reduce((a, b) => a + b, 0) }
    : { groups: undefined, total: undefined };
  // Of counts that cannot be, the shape is asked for only where there is no other.
  const shape = fixed ?? shapeOf({ ...told, multipleOf, bubble }, null);
  if (!isList || !fits(counts, shape)) {
    const { groups, total } = shape;
    const multiples = shape.multipleOf === 1 ? "" : ` in multiples of ${shape.multipleOf}`;
    throw new Refusal(400, `counts must share out ${total} to ${groups} replicas${multiples}`);
  }
  if (!Array.isArray(seconds) || seconds.length !== shape.groups)
    throw new Refusal(400, `seconds must be ${shape.groups} numbers, or null where unknown`);
  // A time that is no time is not the request's fault: the replica could not measure.
  const known = seconds.map((s: unknown) => (typeof s === "number" && s > 0 ? s : null));
  const report: IterationReport = { iteration, counts, seconds: known };
  jobs.report(job, run, report, shape);
  return { iteration };
}

/** Where jobs bring their shape, a request without a run would take the place of the run that trains. */
function checkRun(run: string, fixed: JobShape | null): void {
  if (run === "" && fixed === null)
    throw new Refusal(400, "run must be given: a name for this start of the job");
}

interface SaidShape {
  readonly groups: number | undefined;
  readonly total: number | undefined;
  readonly multipleOf: unknown;
  readonly bubble: unknown;
}

function shapeOf(said: SaidShape, fixed: JobShape | null): JobShape {
  const { groups, total, multipleOf = 1, bubble = 0 } = said;
  if (groups === undefined || total === undefined) {
    if (fixed) return fixed;
    throw new Refusal(400, "replicas and total (micro-batches of the global batch) must be given");
  }
  const isCount = (value: unknown): value is number =>
    Number.isSafeInteger(value) && (value as number) >= 1;
  if (!isCount(groups) || groups > MOST_GROUPS)
    throw new Refusal(400, `replicas must be a whole number from 1 to ${MOST_GROUPS}`);
  if (!isCount(total) || !isCount(multipleOf))
    throw new Refusal(400, "total and multipleOf must be whole numbers from 1");
  if (typeof bubble !== "number" || !(bubble >= 0 && bubble < 1e6))
    throw new Refusal(400, "bubble must be a number from 0");
  const shape = { groups, total, multipleOf, bubble };
  if (fixed && (groups !== fixed.groups || total !== fixed.total))
    throw new Refusal(
      409,
      `this controller shares out ${fixed.total} micro-batches to ${fixed.groups} replicas`,
    );
  try {
    evenAllocation(shape);
  } catch (error) {
    if (error instanceof UserError) throw new Refusal(400, error.message);
    throw error;
  }
  return fixed ?? shape;
}
