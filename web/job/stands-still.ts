import type { JobView } from "../live/api.ts";

/** Whether what is known of its ranks is of the past: their last iteration. */
export function standsStill({ health }: Pick<JobView, "health">): boolean {
  return health === "hung" || health === "failed";
}
