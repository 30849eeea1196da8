/** Names that the site knows, also from earlier: what one site's logs say of them another is not to see. */
import { machinesIn, machinesOf } from "../machines/job-machines.ts";
import type { Service } from "../service.ts";
import { timely } from "../store/timely-history.ts";
import { peopleIn } from "../workflow/deeds.ts";

const MOST_NAMES = 10_000;
const MOST_DOCUMENTS = 1000;

/** Of machines of all jobs, also of those that are over or that others watch, and of incidents. */
export async function machineNames(service: Service): Promise<Set<string>> {
  const { history, incidents, jobs } = service;
  const { coordinator } = service.options;
  const [known, offenders, latest] = await Promise.all([
    timely(coordinator.list()),
    history.offenders(0, MOST_NAMES),
    timely(incidents.latest()),
  ]);
  const saved = await Promise.all(
    known.slice(-MOST_DOCUMENTS).map((job) => timely(coordinator.read(job))),
  );
  const watched = [...jobs.values()].flatMap(({ run }) => (run ? [...machinesOf(run).keys()] : []));
  return new Set([
    ...watched,
    ...saved.flatMap(machinesIn),
    ...offenders.map(({ machine }) => machine),
    ...latest.flatMap(({ machines }) => machines),
  ]);
}

/** Of jobs and machines, and of people: all who did something, and who was to look after it. */
export async function siteNames(service: Service): Promise<readonly string[]> {
  const { history, jobs, workflow } = service;
  const [rows, deeds, machines] = await Promise.all([
    history.jobs(MOST_NAMES),
    history.audit({ most: MOST_NAMES }),
    machineNames(service),
  ]);
  const assignees = [...workflow.handlings.values()].flatMap((one) => one.assignee ?? []);
  const names = [...jobs.keys(), ...rows.map(({ job }) => job)];
  return [...new Set([...names, ...machines, ...peopleIn(deeds), ...assignees])];
}
