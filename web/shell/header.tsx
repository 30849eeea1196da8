/** Where one is, what time it is, whether the line is up; and the few choices there are. */
import type { VNode } from "preact";
import { now } from "../live/now.ts";
import { useObservable } from "../live/observable.ts";
import { incidents } from "../live/store.ts";
import { jobOf } from "../fleet/kinds.ts";
import { ActionsBar, StopActions } from "./actions-switch.tsx";
import { LineBar, LineState } from "./line-state.tsx";
import { links, type Route } from "./route.ts";
import { nextTheme, theme } from "./theme.ts";
import { Who } from "./who.tsx";
import { clockWords, dayWords, exactWords, offsetWords, zone } from "./zone.ts";

export function Header({ at, onKeys }: { readonly at: Route; readonly onKeys: () => void }): VNode {
  return (
    <header class="header">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <div class="header-row">
        <a class="brand" href={links.fleet} title="The fleet">
          <svg class="brand-mark" viewBox="0 0 24 24" aria-hidden="true">
            <rect x="1" y="1" width="22" height="22" rx="5" fill="currentColor" />
            <path
              d="M3 14h5l2.2-4.5L13 17l2.6-10 1.8 7H21"
              fill="none"
              stroke="var(--page)"
              stroke-width="2"
              stroke-linejoin="round"
            />
          </svg>
          Faultline
        </a>
        <Crumbs at={at} />
        <div class="header-end">
          <StopActions />
          <Who />
          <LineState />
          <Clock />
          <ThemeButton />
          <button type="button" class="button-quiet" onClick={onKeys} title="Keys (?)">
            <kbd aria-hidden="true">?</kbd>
            <span class="visually-hidden">Keys</span>
          </button>
        </div>
      </div>
      <LineBar />
      <ActionsBar />
    </header>
  );
}

function Crumbs({ at }: { readonly at: Route }): VNode {
  const known = useObservable(incidents);
  const incident = at.page === "incident" ? known.get(at.id) : undefined;
  const job = at.page === "job" ? at.job : incident ? jobOf(incident) : null;
  return (
    <nav class="crumbs" aria-label="Where you are">
      <ol>
        <li>
          <a href={links.fleet} {...(at.page === "fleet" ? { "aria-current": "page" } : {})}>
            Fleet
          </a>
        </li>
        {job !== null && (
          <li>
            <a
              class="cut"
              href={links.job(job)}
              {...(at.page === "job" ? { "aria-current": "page" } : {})}
            >
              {job.slice(0, 200)}
            </a>
          </li>
        )}
        {at.page === "history" && (
          <li>
            <a href={links.history(at.words)} aria-current="page">
              Incidents
            </a>
          </li>
        )}
        {(at.page === "site" || at.page === "right") && (
          <li>
            <a href={links.site} {...(at.page === "site" ? { "aria-current": "page" } : {})}>
              Site
            </a>
          </li>
        )}
        {at.page === "right" && (
          <li>
            <a href={links.right} aria-current="page">
              How right
            </a>
          </li>
        )}
        {at.page === "incident" && (
          <li>
            <a href={links.incident(at.id)} aria-current="page">
              Incident
            </a>
          </li>
        )}
      </ol>
    </nav>
  );
}

function Clock(): VNode {
  const chosen = useObservable(zone);
  const ms = useObservable(now);
  const isUtc = chosen === "utc";
  return (
    <button
      type="button"
      class="button-quiet clock"
      aria-pressed={isUtc}
      aria-label={`Times are in ${isUtc ? "UTC" : "your zone"}. Show them in ${isUtc ? "your zone" : "UTC"}`}
      title={`${exactWords(ms)} (u)`}
      onClick={() => zone.set(isUtc ? "local" : "utc")}
    >
      <span class="clock-day soft">{dayWords(ms, chosen)}</span>
      <span class="num clock-time">{clockWords(ms, chosen)}</span>
      <span class="clock-zone soft">{isUtc ? "UTC" : offsetWords(ms)}</span>
    </button>
  );
}

const SIGN = { system: "◐", light: "○", dark: "●" } as const;

function ThemeButton(): VNode {
  const chosen = useObservable(theme);
  return (
    <button
      type="button"
      class="button-quiet theme-button"
      title="Colours: system, light, dark (t)"
      onClick={nextTheme}
    >
      <span aria-hidden="true">{SIGN[chosen]}</span>
      <span class="visually-hidden">Colours: {chosen}</span>
    </button>
  );
}

/** The address is the page's own: an anchor must not change it. */
function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("main h1")?.focus();
}
