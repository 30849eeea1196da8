/** The ways to a job that can be broken on purpose: there in a demonstration only. */
import { UserError } from "../../../base/errors.ts";
import { type DemoControl, type DemoState, Refusal } from "../view.ts";
import { get, post, type Route } from "./route.ts";
import { demoFault } from "./schemas.ts";

const PATH = "/demo";
const WITH_BODY = [408, 409, 413, 415];

export function demoRoutes(demo: DemoControl): readonly Route[] {
  return routesOfDemo(demo).map((route) => ({
    ...route,
    answer: (ask) => {
      // The demonstration is a job like others: it is nothing of theirs.
      if (ask.caller.jobs !== null) throw new Refusal(404, "there is nothing at this path");
      return route.answer!(ask);
    },
  }));
}

function routesOfDemo(demo: DemoControl): readonly Route[] {
  const errors = WITH_BODY;
  const mend = (): Promise<DemoState> => orRefused(() => demo.mend());
  return [
    get(PATH, "DemoState", "The demonstration: what is broken now", {}, () => demo.state()),
    post(PATH, "DemoState", "Break something", { body: "DemoFault", errors }, async ({ body }) => {
      const parsed = demoFault.safeParse(await body());
      if (!parsed.success)
        throw new Refusal(
          400,
          'the body must be {"kind": "gpu", "link", "nic", "data-loader" or "machine"}, with a "rank" or without',
        );
      return await orRefused(() => demo.breakIt(parsed.data));
    }),
    {
      ...post(PATH, "DemoState", "Mend all that is broken", { errors }, mend),
      method: "delete",
    },
    post(`${PATH}/restart`, "DemoState", "Start the job again, healthy", { errors }, () =>
      orRefused(() => demo.restart()),
    ),
  ];
}

/** What the user can do otherwise is said; anything else is an error of ours. */
async function orRefused(work: () => DemoState | Promise<DemoState>): Promise<DemoState> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError) throw new Refusal(409, error.message);
    throw error;
  }
}
