/** Jobs as people and programs see them, and what jobs themselves ask: their shares of the micro-batches. */
import type { RankColumns } from "../view.ts";
import { JsonBytes } from "./json-bytes.ts";
import { column, jsonText } from "./json.ts";
import { moment, oneOf, readQuery, text, whole } from "./queries.ts";
import { found, get, jobOf, type Route } from "./route.ts";

const MOST_ITERATIONS = 20_000;

const ITERATIONS_QUERY = {
  from: moment("ended at or after"),
  to: moment("ended at or before"),
  most: whole("thinned out to at most so many; 2000 by default", MOST_ITERATIONS),
  run: text("of this run; of the present one by default"),
};
const RANKS_QUERY = {
  only: oneOf("without what changes only with `layout`: RankValues instead", ["values"]),
};
const PLAN_QUERY = {
  iteration: text("for this iteration"),
  run: text("of this start of the job"),
  replicas: text("replicas of the model"),
  total: text("micro-batches of the global batch"),
  multipleOf: text("each replica takes a multiple of this; 1 by default"),
  bubble: text("how long a pipeline fills and drains, in micro-batch times; 0 by default"),
};

export const JOB_ROUTES: readonly Route[] = [
  get("/jobs", "Jobs", "All jobs", {}, ({ view }) => ({ jobs: view.jobs() })),
  get("/jobs/:job", "Job", "One job", {}, (ask) => found(ask.view.job(jobOf(ask)), "job")),
  {
    ...get(
      "/jobs/:job/ranks",
      "Ranks",
      "The latest iteration of every rank, as columns",
      RANKS_QUERY,
      (ask) => {
        const { only } = readQuery(ask.request.url ?? "", RANKS_QUERY);
        const columns = found(ask.view.ranks(jobOf(ask)), "job");
        return only === "values" ? rankValues(columns) : rankColumns(columns);
      },
    ),
    answers: { schema: "Ranks", or: "RankValues" },
  },
  get(
    "/jobs/:job/iterations",
    "Iterations",
    "Iteration times of a job, ascending",
    ITERATIONS_QUERY,
    async (ask) => {
      const { from, to, most, run } = readQuery(ask.request.url ?? "", ITERATIONS_QUERY);
      const rows = await ask.view.iterations(jobOf(ask), {
        ...(run === undefined ? {} : { run }),
        ...(from === undefined ? {} : { fromMs: from }),
        ...(to === undefined ? {} : { toMs: to }),
        most: most ?? 2000,
      });
      const { iteration, endMs, durationMs } = found(rows, "job");
      return {
        iteration: column(iteration),
        endMs: column(endMs),
        durationMs: column(durationMs),
      };
    },
  ),
];

/** What jobs ask and report; all that `plan serve` has. */
export const SHARE_ROUTES: readonly Route[] = [
  {
    method: "get",
    path: "/v1/jobs/:job/plan",
    needs: "agent",
    summary: "Micro-batches of each replica for an iteration; the same for all who ask",
    query: PLAN_QUERY,
    answers: { schema: "MicroBatchPlan" },
    errors: [409, 429, 503],
    answer: ({ view, param, request }) =>
      view.askShares(param("job"), {
        ask: "plan",
        query: (request.url ?? "").split("?")[1] ?? "",
      }),
  },
  {
    method: "post",
    path: "/v1/jobs/:job/iterations",
    needs: "agent",
    summary:
      "An iteration that has ended: each replica's micro-batches and the seconds it computed",
    query: {},
    body: "MicroBatchReport",
    answers: { schema: "MicroBatchReported" },
    errors: [408, 409, 413, 415, 429],
    answer: async ({ view, param, body }) =>
      view.askShares(param("job"), { ask: "report", body: await body() }),
  },
  {
    ...get("", "MicroBatches", "Shares of a job that asks for them, with all changes", {}, (ask) =>
      ask.view.askShares(jobOf(ask), { ask: "state" }),
    ),
    path: "/v1/jobs/:job",
    errors: [404],
  },
];

/** What changes with every iteration. */
function rankValues(columns: RankColumns): Buffer {
  return written(columns).text("}").done();
}

function rankColumns(columns: RankColumns): Buffer {
  const { groups, rank, machine, gpu, stage, pipeline, data, tensor } = columns;
  const places = jsonText({ groups, rank, machine, gpu, stage, pipeline, data, tensor });
  return written(columns)
    .text(`,${places.slice(1)}`)
    .done();
}

function written(columns: RankColumns): JsonBytes {
  const { iteration, durationMs, ownMs, waitMs, lateMs, temperature, state } = columns;
  const bytes = new JsonBytes().text(`{"layout":${jsonText(columns.layout)}`);
  for (const [name, values] of Object.entries({
    iteration,
    durationMs,
    ownMs,
    waitMs,
    lateMs,
    temperature,
  }))
    bytes.text(`,"${name}":`).numbers(values);
  return bytes.text(`,"state":`).words(state);
}
