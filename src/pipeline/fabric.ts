/** What files say about a site's network, for jobs that run on it. */
import { UserError } from "../base/errors.ts";
import { ingest } from "../ingest/ingest.ts";
import type { FabricPort } from "../model/fabric.ts";
import type { Env } from "../model/job.ts";

export async function readFabric(paths: readonly string[], env: Env): Promise<FabricPort[]> {
  if (paths.length === 0) return [];
  const { readings } = await ingest(paths, env);
  const ports = readings.flatMap(({ fabric }) => fabric ?? []);
  if (ports.length === 0)
    throw new UserError(
      `nothing in ${paths.join(", ")} says which switch or rack machines hang on`,
      "docs/inputs.md lists what is read: LLDP, InfiniBand, UFM, NetBox, Kubernetes, Slurm, a table",
      2,
    );
  return ports;
}
