/** Every way into the service: path, who may take it, what it answers. Router and OpenAPI are both made of this table. */
import { SLACK_PATH } from "../slack/slack-app.ts";
import { INCIDENT_ROUTES } from "./incident-routes.ts";
import { JOB_ROUTES, SHARE_ROUTES } from "./job-routes.ts";
import { get, own, post, type Route } from "./route.ts";
import { SITE_ROUTES } from "./site-routes.ts";
import { WORKFLOW_ROUTES } from "./workflow-routes.ts";

export const ROUTES: readonly Route[] = [
  own("/", "nothing", { type: "text/html" }, "The page"),
  own(
    "/assets/:file",
    "nothing",
    { type: "text/javascript" },
    "Scripts and styles of the page",
    [404],
  ),
  own("/healthz", "nothing", { schema: "Health" }, "Whether the service works", [503]),
  own("/metrics", "metrics", { type: "text/plain" }, "Figures of the service for Prometheus"),
  own("/api/v1/openapi.json", "nothing", { type: "application/json" }, "This description"),
  own(
    "/api/v1/events",
    "read",
    { type: "text/event-stream" },
    "Server-sent events: a snapshot, then every change. With Last-Event-ID a reader continues where it stopped",
    [503],
  ),
  own("/api/v1/session", "nothing", { schema: "Session" }, "Who you are, and what you may do"),
  own("/auth/login", "nothing", { type: "text/html" }, "Sends a browser to sign in", [401, 502]),
  own(
    "/auth/callback",
    "nothing",
    { type: "text/html" },
    "Where the provider sends it back to",
    [401, 403, 502],
  ),
  {
    ...own("/auth/logout", "nothing", { schema: "SignedOut" }, "Sign out", [403, 415]),
    method: "post",
  },
  {
    ...own(
      SLACK_PATH,
      "nothing",
      { type: "text/plain" },
      "Where Slack sends clicks on buttons of alerts: a form, with Slack's signature",
      [401, 404, 408, 409, 413, 415],
    ),
    method: "post",
  },
  get(
    "/agents",
    "Agents",
    "Agents that are connected, with their versions and clocks",
    {},
    ({ view }) => ({ agents: view.agents() }),
  ),
  ...JOB_ROUTES,
  ...INCIDENT_ROUTES,
  ...WORKFLOW_ROUTES,
  ...SITE_ROUTES,
  get("/actions", "ActionsSwitch", "Whether actions are run at all", {}, ({ view }) =>
    view.actionsSwitch(),
  ),
  switchRoute(false),
  switchRoute(true),
  ...SHARE_ROUTES,
];

function switchRoute(isOn: boolean): Route {
  return post(
    `/actions/${isOn ? "on" : "off"}`,
    "ActionsSwitch",
    isOn ? "Allow actions again" : "Switch all actions off: nothing is run any more",
    { errors: [409] },
    ({ view, caller }) => view.switchActions(isOn, caller.name),
  );
}
