import { expect, it } from "vitest";
import { testIncident } from "../../../test/support/live/incident.ts";
import type { Mute } from "../../model/handling.ts";
import type { History } from "../../history/history.ts";
import type { Service } from "./service.ts";
import { serviceView } from "./service-view.ts";
import { untouched } from "./workflow/deeds.ts";
import { siteIncidents } from "./site/site-incidents.ts";
import type { AskedMute } from "./workflow/deeds.ts";

/** As much of a service as is asked here. */
function viewOf(history: object, workflow: object) {
  const incidents = siteIncidents(history as History, () => []);
  const parts = { options: { history }, jobs: new Map([["llama", {}]]), workflow, incidents };
  return serviceView({ ...parts, judgements: () => [] } as unknown as Service, 0);
}

it("says that nobody knows the job of a mute", async () => {
  const mute = async (asked: AskedMute, who: string): Promise<Mute> => ({ ...asked, id: "m", who });
  const asked = {
    kind: "mute",
    machine: null,
    cause: null,
    fromMs: 1,
    untilMs: 2,
    why: "w",
  } as const;
  const says = async (job: string | null, jobs = async () => [{ job: "earlier" }]) =>
    (await viewOf({ jobs }, { mute }).mute({ ...asked, job }, "ada")).says;
  expect(await says("lama")).toMatch(/no job that is known here is called lama/);
  for (const job of ["llama", "ll*", "earlier", null]) expect(await says(job)).toBeUndefined();
  // Nobody can say.
  expect(await says("lama", async () => Promise.reject(new Error("away")))).toBeUndefined();
});

it("counts incidents that were merged once among the machines that fail", async () => {
  const asked: unknown[] = [];
  const history = {
    incidents: async () => [testIncident({ id: "a.1" })],
    offenders: async (...words: unknown[]) => (asked.push(words), []),
  };
  const handlings = new Map([["b.1", { ...untouched("b.1"), mergedInto: "a.1" }]]);
  await viewOf(history, { handlings }).offenders(5, 10);
  expect(asked).toEqual([[5, 10, undefined, ["b.1"]]]);
});
