/** Where the page is, as its address says: links can be kept and sent. */
import { takeLink } from "../live/link.ts";
import { observable } from "../live/observable.ts";
import { routeOf, type Route } from "./address.ts";

export { links, routeOf, type Route } from "./address.ts";

const here = (): Route => routeOf(takeLink(location.hash));
export const route = observable<Route>(here());
addEventListener("hashchange", () => route.set(here()));
