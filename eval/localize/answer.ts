/** What a method says of a job. */
export interface Answer {
  readonly cause: "compute" | "network";
  /** Nobody where empty. */
  readonly ranks: readonly number[];
  /** The device's name, where the method names devices. */
  readonly name?: string;
  /** Share of the logs that it read. */
  readonly share: number;
}
