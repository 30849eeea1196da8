/** The page's frame: where one is, whether the line is up, and the page itself. */
import type { VNode } from "preact";
import { useObservable } from "../live/observable.ts";
import { route } from "./route.ts";
import { FleetPage } from "../fleet/fleet-page.tsx";
import { IncidentPage } from "../incident/incident-page.tsx";
import { JobPage } from "../job/job-page.tsx";
import { DemoPanel } from "../demo/demo-panel.tsx";

export function App(): VNode {
  const at = useObservable(route);
  return (
    <>
      <main>
        {at.page === "fleet" && <FleetPage />}
        {at.page === "job" && <JobPage job={at.job} />}
        {at.page === "incident" && <IncidentPage id={at.id} />}
      </main>
      <DemoPanel />
    </>
  );
}
