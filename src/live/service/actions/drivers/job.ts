/**
 * The job itself, where it asks the service for its micro-batches (docs/guides/microbatches.md): "done" on the incident is
 * the permission to give out shares that suit the replicas' speeds, so nothing can be left half done.
 */
import { done, type Plan } from "./driver.ts";

export function jobPlan(job: string): Plan {
  const allowed = () =>
    Promise.resolve(
      done(
        `replicas of ${job} take micro-batches by their speed, from their next iterations until the run ends`,
        true,
      ),
    );
  return {
    words: `give the replicas of ${job} micro-batches by their measured speed, until the run ends`,
    run: allowed,
    settle: allowed,
    undo: {
      words: `give the replicas of ${job} equal shares again`,
      run: () => Promise.resolve(done(`replicas of ${job} take equal shares again`)),
    },
  };
}
