/** The global rank of a process in the job, 0 to world size − 1. */
export type Rank = number;

/** More ranks than any job has; numbers beyond are not believed. */
export const MAX_RANKS = 1 << 20;

/** A place in a file that a person can open: line numbers count from 1. */
export interface Place {
  readonly file: string;
  readonly line?: number;
}
