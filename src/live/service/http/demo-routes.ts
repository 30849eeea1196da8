/** The ways to a job that can be broken on purpose: there in a demonstration only. */
import { UserError } from "../../../base/errors.ts";
import { type DemoControl, type DemoState, Refusal } from "../view.ts";
import type { Ask, Route } from "./route.ts";
import { demoFault } from "./schemas.ts";

const PATH = "/api/v1/demo";
const WITH_BODY = [408, 409, 413, 415];

export function demoRoutes(demo: DemoControl): readonly Route[] {
  const shared = { query: {}, answers: { schema: "DemoState" } } as const;
  return routesOfDemo(demo, shared).map((route) => ({
    ...route,
    answer: (ask) => {
      // The demonstration is a job like others: it is nothing of theirs.
      if (ask.caller.jobs !== null) throw new Refusal(404, "there is nothing at this path");
      return route.answer!(ask);
    },
  }));
}

function routesOfDemo(
  demo: DemoControl,
  shared: Pick<Route, "query" | "answers">,
): readonly Route[] {
  return [
    {
      ...shared,
      method: "get",
      path: PATH,
      needs: "read",
      summary: "The demonstration: what is broken now",
      errors: [],
      answer: () => demo.state(),
    },
    {
      ...shared,
      method: "post",
      path: PATH,
      needs: "act",
      summary: "Break something",
      body: "DemoFault",
      errors: WITH_BODY,
      answer: async ({ body }: Ask) => {
        const parsed = demoFault.safeParse(await body());
        if (!parsed.success)
          throw new Refusal(
            400,
            'the body must be {"kind": "gpu", "link", "nic", "data-loader" or "machine"}, with a "rank" or without',
          );
        return await orRefused(() => demo.breakIt(parsed.data));
      },
    },
    {
      ...shared,
      method: "delete",
      path: PATH,
      needs: "act",
      summary: "Mend all that is broken",
      errors: WITH_BODY,
      answer: () => orRefused(() => demo.mend()),
    },
    {
      ...shared,
      method: "post",
      path: `${PATH}/restart`,
      needs: "act",
      summary: "Start the job again, healthy",
      errors: WITH_BODY,
      answer: () => orRefused(() => demo.restart()),
    },
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
