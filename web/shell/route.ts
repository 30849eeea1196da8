/** Where the page is, as its address says: links can be kept and sent. Alerts link to #/incidents/ID. */
import { observable } from "../live/observable.ts";

export type Route =
  | { readonly page: "fleet" }
  | { readonly page: "job"; readonly job: string }
  | { readonly page: "incident"; readonly id: string }
  | { readonly page: "nothing"; readonly path: string };

export function routeOf(hash: string): Route {
  const [path = "", ...rest] = hash.replace(/^#?\/?/, "").split("/");
  const name = decoded(rest.join("/"));
  if (path === "" && name === "") return { page: "fleet" };
  if (path === "jobs" && name !== "") return { page: "job", job: name };
  if (path === "incidents" && name !== "") return { page: "incident", id: name };
  return { page: "nothing", path: hash.slice(0, 200) };
}

export const links = {
  fleet: "#/",
  job: (job: string): string => `#/jobs/${encodeURIComponent(job)}`,
  incident: (id: string): string => `#/incidents/${encodeURIComponent(id)}`,
};

export const route = observable<Route>(routeOf(location.hash));
addEventListener("hashchange", () => route.set(routeOf(location.hash)));

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
