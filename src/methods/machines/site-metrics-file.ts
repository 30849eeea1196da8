/** What a site's labels taught, as the file that `faultline machines train --labels` writes. */
import { jsonOf } from "../../base/json.ts";
import { UserError } from "../../base/errors.ts";
import type { SiteMetrics } from "../../model/machine-labels.ts";

export function readSiteMetrics(text: string, name: string): SiteMetrics {
  const hint = "give a file that faultline machines train --labels has written";
  const said = jsonOf(text) as Partial<SiteMetrics> | null | undefined;
  if (said === undefined) throw new UserError(`${name} is not JSON`, hint, 3);
  if (said?.schema !== "faultline.machine-priorities/1")
    throw new UserError(`${name} holds no priorities of metrics`, hint, 3);
  const isList = Array.isArray(said.order) && said.order.every((one) => typeof one === "string");
  if (!isList || !areLimits(said.scores) || !areLimits(said.sigmas))
    throw new UserError(`${name} is broken`, hint, 3);
  return said as SiteMetrics;
}

function areLimits(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).every((one) => typeof one === "number" && one >= 0);
}
