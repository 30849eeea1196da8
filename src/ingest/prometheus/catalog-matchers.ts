/** What the catalog wants of a name's labels, for the server to leave out the rest: seven of eight CPU modes. */
import { servedBy } from "../../model/metric-catalog.ts";
import type { Matcher } from "./matchers.ts";

/** Only what all of the name's uses ask for: a series that one of them needs must come. */
export function catalogMatchers(name: string): readonly Matcher[] {
  const [first, ...others] = servedBy(name).map(({ source }) => source.match ?? {});
  return Object.entries(first ?? {})
    .filter(([label, value]) => others.every((match) => match[label] === value))
    .map(([label, value]) => ({ label, op: "=", value }));
}
