/** The page's frame: where one is, whether the line is up, and the page itself. */
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useObservable } from "../live/observable.ts";
import { incidents } from "../live/store.ts";
import { Announcer } from "./announcer.tsx";
import { Header } from "./header.tsx";
import { KeysDialog } from "./keys-dialog.tsx";
import { listenForKeys, useKeys } from "./keys.ts";
import { LIST_KEYS } from "./list-keys.ts";
import { links, type Route, route } from "./route.ts";
import { keepScroll, takeOverScroll } from "./scroll.ts";
import { nextTheme } from "./theme.ts";
import { titleOf } from "./title.ts";
import { zone } from "./zone.ts";
import { jobOf } from "../fleet/kinds.ts";
import { FleetPage } from "../fleet/fleet-page.tsx";
import { HistoryPage } from "../history/history-page.tsx";
import { IncidentPage } from "../incident/incident-page.tsx";
import { JobPage } from "../job/job-page.tsx";
import { RightPage } from "../site/right-page.tsx";
import { SitePage } from "../site/site-page.tsx";
import { DemoPanel } from "../demo/demo-panel.tsx";

export function App(): VNode {
  const at = useObservable(route);
  const [areKeysShown, showKeys] = useState(false);
  useEffect(() => listenForKeys(document), []);
  useKeys([
    ...LIST_KEYS,
    { keys: "g f", says: "the fleet", run: () => void (location.hash = links.fleet) },
    { keys: "g h", says: "all incidents", run: () => void (location.hash = links.history("")) },
    {
      keys: "g s",
      says: "the site: mutes, the week",
      run: () => void (location.hash = links.site),
    },
    { keys: "Escape", says: "back, or close what is open", run: () => up(at) },
    { keys: "t", says: "colours: system, light, dark", run: nextTheme },
    { keys: "u", says: "times in UTC or in your zone", run: otherZone },
    { keys: "?", says: "these keys", run: () => showKeys(true) },
  ]);
  useNavigation(at);
  return (
    <>
      <Header at={at} onKeys={() => showKeys(true)} />
      <main id="main">
        {at.page === "fleet" && <FleetPage />}
        {at.page === "job" && <JobPage key={at.job} job={at.job} />}
        {at.page === "incident" && <IncidentPage key={at.id} id={at.id} />}
        {at.page === "history" && <HistoryPage words={at.words} />}
        {at.page === "site" && <SitePage />}
        {at.page === "right" && <RightPage />}
        {at.page === "nothing" && <Nowhere />}
      </main>
      <DemoPanel />
      <Announcer />
      {areKeysShown && <KeysDialog onClose={() => showKeys(false)} />}
    </>
  );
}

/** Title, focus and scrolling follow the address; who comes back finds the page where it was left. */
function useNavigation(at: Route): void {
  const known = useObservable(incidents);
  useEffect(() => {
    document.title = titleOf(at, known);
  }, [at, known]);
  useEffect(takeOverScroll, []);
  const last = useRef<Route | null>(null);
  useLayoutEffect(() => {
    const came = last.current;
    last.current = at;
    const stop = keepScroll(
      at.page === "fleet" || (at.page === "job" && came?.page === "incident"),
    );
    if (came !== null) {
      const heading = document.querySelector<HTMLElement>("main h1");
      heading?.setAttribute("tabindex", "-1");
      heading?.focus({ preventScroll: true });
    }
    return stop;
  }, [at]);
}

/** One level up. */
function up(at: Route): boolean {
  if (at.page === "fleet") return false;
  const incident = at.page === "incident" ? incidents.value.get(at.id) : undefined;
  const job = incident ? jobOf(incident) : null;
  location.hash = job === null ? links.fleet : links.job(job);
  return true;
}

function otherZone(): void {
  zone.set(zone.value === "utc" ? "local" : "utc");
}

function Nowhere(): VNode {
  return (
    <div class="stack">
      <h1>Page not found</h1>
      <p>
        There is no page at this address. <a href={links.fleet}>Go to the fleet</a>.
      </p>
    </div>
  );
}
