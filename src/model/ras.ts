/** What NCCL's own monitor (RAS) says of a job at one moment. */
export interface RasProcess {
  /** Rank inside the communicator, not the global rank. */
  readonly commRank: number;
  readonly host: string;
  readonly pid: number;
  readonly gpu: number;
}

export interface RasMissing extends RasProcess {
  /** dead: RAS gave the process up; unresponsive: it does not answer; missing: no data, reason not given. */
  readonly state: "dead" | "unresponsive" | "missing";
}

export interface RasCommunicator {
  readonly hash: string;
  /** Ranks that the communicator should have; 0 where RAS does not say. */
  readonly size: number;
  readonly missing: readonly RasMissing[];
  /** Launch counts per collective type; text output lists only the ranks of a mismatch. */
  readonly counts: readonly (RasProcess & {
    readonly collective: string;
    readonly launched: number;
  })[];
  readonly line: number;
}

export interface RasReport {
  readonly file: string;
  readonly communicators: readonly RasCommunicator[];
  /** Processes that RAS names dead or missing outside any communicator. */
  readonly missingProcesses: readonly RasMissing[];
}
