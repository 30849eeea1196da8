/** How much of anything one caller may have of the service. */
export interface HttpLimits {
  readonly bodyBytes: number;
  readonly urlBytes: number;
  readonly headerBytes: number;
  /** From the connection, or the last answer on it, to the end of the headers. */
  readonly headersMs: number;
  /** From the headers to the end of the body. */
  readonly bodyMs: number;
  /** A connection on which nothing moves is closed; streams of events and agents are not meant. */
  readonly idleMs: number;
  /** Agents count, too. */
  readonly connections: number;
  /** How long the service may take for an answer: a history that does not answer must not hold places. */
  readonly answerMs: number;
  readonly eventStreams: number;
  /** What one reader of events may leave unread before it is dropped. */
  readonly unreadBytes: number;
  readonly heartbeatMs: number;
  /** Events that are kept for readers who come back. */
  readonly keptEvents: number;
  readonly keptEventBytes: number;
}

export const HTTP_LIMITS: HttpLimits = {
  bodyBytes: 64 << 10,
  urlBytes: 4 << 10,
  headerBytes: 16 << 10,
  headersMs: 10_000,
  bodyMs: 10_000,
  idleMs: 60_000,
  connections: 10_000,
  answerMs: 30_000,
  eventStreams: 64,
  unreadBytes: 1 << 20,
  heartbeatMs: 15_000,
  keptEvents: 4096,
  keptEventBytes: 4 << 20,
};
