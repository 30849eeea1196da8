/** Where the page is, as its address says: links can be kept and sent. */
import { observable } from "../live/observable.ts";
import { routeOf, type Route } from "./address.ts";

export { links, routeOf, type Route } from "./address.ts";

export const route = observable<Route>(routeOf(location.hash));
addEventListener("hashchange", () => route.set(routeOf(location.hash)));
