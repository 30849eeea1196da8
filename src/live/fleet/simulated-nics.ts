/** What a simulated machine's NICs are called: one per GPU, as in the topology (simulate/cluster/topology.ts). */

const MOST_GPUS = 16;

export const SIMULATED_NICS: readonly string[] = Array.from(
  { length: MOST_GPUS },
  (_, gpu) => `mlx5_${gpu}`,
);
