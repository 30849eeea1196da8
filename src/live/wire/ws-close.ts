/** Codes that the service closes an agent's WebSocket with. */
export const CLOSE = {
  /** A frame that is not what it should be. */
  malformed: 4400,
  /** A hello with a name that the token is not for, or of another protocol. */
  forbidden: 4403,
  /** No hello in time. */
  tooLate: 4408,
  /** Another agent of this name is there and answers. */
  taken: 4409,
  /** The same agent has come again on another connection. */
  replaced: 4410,
  /** A report could not be taken; it may be later. */
  notNow: 1011,
} as const;
