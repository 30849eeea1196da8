/** Addresses of the page, both ways. Alerts link to #/incidents/ID. */
export type Route =
  | { readonly page: "fleet" }
  | { readonly page: "job"; readonly job: string }
  | { readonly page: "incident"; readonly id: string }
  | { readonly page: "history"; readonly words: string }
  | { readonly page: "site" }
  | { readonly page: "right" }
  | { readonly page: "nothing"; readonly path: string };

/** The service's names are far shorter. */
const MOST_NAME = 1000;

export function routeOf(hash: string): Route {
  // Addresses come from anywhere: one of a megabyte is none of ours.
  if (hash.length > 10_000) return { page: "nothing", path: hash.slice(0, 200) };
  const [path = "", ...rest] = hash.replace(/^#?\/?/, "").split("/");
  const name = decoded(rest.join("/"));
  if (path === "" && name === "") return { page: "fleet" };
  if (path === "site" && name === "") return { page: "site" };
  if (path === "site" && name === "right") return { page: "right" };
  if (path === "jobs" && name !== "") return { page: "job", job: name };
  if (path === "history") return { page: "history", words: name };
  if (path === "incidents" && name !== "") return { page: "incident", id: name };
  return { page: "nothing", path: hash.slice(0, 200) };
}

export const links = {
  fleet: "#/",
  job: (job: string): string => `#/jobs/${encoded(job)}`,
  incident: (id: string): string => `#/incidents/${encoded(id)}`,
  site: "#/site",
  right: "#/site/right",
  history: (words: string): string => `#/history/${encoded(words)}`,
};

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** encodeURIComponent throws at halves of surrogate pairs, which names of strangers may hold. */
function encoded(text: string): string {
  return encodeURIComponent(text.slice(0, MOST_NAME).replace(/\p{Cs}/gu, "\ufffd"));
}
