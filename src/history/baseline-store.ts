/** What is remembered of healthy runs between calls, so that later ones can be compared without giving them again. */
import type { RunProfile } from "../model/trace-profile.ts";

/**
 * Runs are only held against runs of the same kind (FLARE §5.2.2: by backend and scale; §8.2: by hardware). The model
 * is not part of the key: its operators are in the profile, and what is not alike is not compared.
 */
export interface BaselineKey {
  /** "nccl"; "" where the traces do not say. */
  readonly backend: string;
  /** As the user calls it; "" for none. */
  readonly family: string;
  readonly worldSize: number;
  readonly hardware: string;
}

/** One implementation keeps a JSON file; a database can take its place. */
export interface BaselineStore {
  /** Healthy runs under a key, the oldest first. */
  find(key: BaselineKey): Promise<readonly RunProfile[]>;
  /** A run from the same source takes the place of the one before. */
  add(key: BaselineKey, run: RunProfile): Promise<void>;
}

export function keyOf({ backend, worldSize, hardware }: RunProfile, family: string): BaselineKey {
  return { backend, family, worldSize, hardware };
}

export function keyWords({ backend, family, worldSize, hardware }: BaselineKey): string {
  const parts = [family, backend, `${worldSize} rank${worldSize === 1 ? "" : "s"}`, hardware];
  return parts.filter((part) => part !== "").join(", ");
}
