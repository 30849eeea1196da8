/**
 * How the service stands, for /healthz. Only what a restart might help is an error (503): a broker or a database that is
 * away, and a full disk, are not ended by ending the service, which goes on from memory.
 */
export interface Health {
  /** One sentence where the service cannot do its work; null otherwise. */
  readonly error: string | null;
  /** What it does without, and works on; null for nothing. */
  readonly degraded: string | null;
  readonly store: "ok" | "full" | "away";
  /** "none": agents connect to the service itself. */
  readonly broker: "ok" | "away" | "none";
}

export interface Standing {
  /** Why the data folder has no room; null while it has. */
  readonly noRoom: string | null;
  readonly answers: boolean;
  /** Writes that wait in memory for a store that may go away; null for a store in a file of our own. */
  readonly waiting: number | null;
  readonly broker: Health["broker"];
}

export function healthOf({ noRoom, answers, waiting, broker }: Standing): Health {
  const isAway = !answers && noRoom === null;
  const sentences = [
    ...(noRoom === null ? [] : [noRoom]),
    ...(isAway && waiting !== null
      ? [`the history cannot be reached: ${waiting} writes wait in memory`]
      : []),
    ...(broker === "away" ? ["the broker cannot be reached: agents keep their reports"] : []),
  ];
  return {
    error:
      isAway && waiting === null ? "the history cannot be reached; see the service's log" : null,
    degraded: sentences.length > 0 ? sentences.join("; ") : null,
    store: noRoom !== null ? "full" : isAway ? "away" : "ok",
    broker,
  };
}
