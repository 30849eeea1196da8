/** What the service asks, as the head of a frame. Whatever it asks for, the answer's size is bounded before it is made. */
import {
  type Fields,
  flagIn,
  integerIn,
  integersIn,
  nameIn,
  orNull,
  rankIn,
  ranksIn,
  textIn,
} from "./fields.ts";
import type { AgentRequest } from "./messages.ts";
import { ASKS, LIMITS } from "./messages.ts";

/** The longest that an agent waits for ranks. */
export const MOST_WAIT_MS = 600_000;
const MOST_STEPS = 1000;
const MOST_REPEATS = 100;
const MOST_TEST_ROUNDS = 64;
const MOST_MB = 1024;
const MOST_WIRE_ITERATIONS = 256;

/** Throws FrameError. */
export function readRequest(head: Fields): AgentRequest {
  const word = textIn(head, "ask", 64);
  const about = { job: nameIn(head, "job"), run: nameIn(head, "run") };
  const ask = ASKS.find((known) => known === word);
  switch (ask) {
    case "operators":
      return {
        ask,
        ...about,
        rank: rankIn(head, "rank"),
        fromIteration: iterationIn(head, "fromIteration"),
        toIteration: iterationIn(head, "toIteration"),
      };
    case "wire":
      return {
        ask,
        ...about,
        ranks: ranksIn(head, "ranks", LIMITS.ranksPerAgent),
        iterations: integersIn(
          head,
          "iterations",
          MOST_WIRE_ITERATIONS,
          0,
          Number.MAX_SAFE_INTEGER,
        ),
      };
    case "evidence":
      return {
        ask,
        ...about,
        ranks: orNull(head, "ranks", (fields, key) => ranksIn(fields, key, LIMITS.ranksPerAgent)),
        records: integerIn(head, "records", 0, 2 ** 31),
        stacks: flagIn(head, "stacks"),
        logBytes: integerIn(head, "logBytes", 0, LIMITS.replyBytes),
      };
    case "prepare-tests":
      return { ask, ...about, group: ranksIn(head, "group", LIMITS.worldSize) };
    case "read-tests":
      return {
        ask,
        ...about,
        group: ranksIn(head, "group", LIMITS.worldSize),
        atIteration: iterationIn(head, "atIteration"),
        rounds: integerIn(head, "rounds", 1, MOST_TEST_ROUNDS),
        waitMs: integerIn(head, "waitMs", 1, MOST_WAIT_MS),
      };
    case "validate":
      return {
        ask,
        ...about,
        group: ranksIn(head, "group", LIMITS.worldSize),
        atIteration: iterationIn(head, "atIteration"),
        // Services before this word asked for one.
        rounds: head["rounds"] === undefined ? 1 : integerIn(head, "rounds", 1, MOST_TEST_ROUNDS),
        gemm: flagIn(head, "gemm"),
        ring: flagIn(head, "ring"),
        tree: flagIn(head, "tree"),
        // Services before this word tested no rails.
        stride: head["stride"] === undefined ? 1 : integerIn(head, "stride", 1, LIMITS.worldSize),
        repeats: integerIn(head, "repeats", 1, MOST_REPEATS),
        mb: integerIn(head, "mb", 1, MOST_MB),
        limitMs: integerIn(head, "limitMs", 1, MOST_WAIT_MS),
        waitMs: integerIn(head, "waitMs", 1, MOST_WAIT_MS),
      };
    case "profile":
      return {
        ask,
        ...about,
        ranks: ranksIn(head, "ranks", LIMITS.ranksPerAgent),
        steps: integerIn(head, "steps", 1, MOST_STEPS),
        waitMs: integerIn(head, "waitMs", 1, MOST_WAIT_MS),
      };
    // Whoever asks so is newer: the agent refuses by name instead of leaving it without an answer.
    case undefined:
      return { ask: "unknown", ...about, word };
  }
}

const iterationIn = (fields: Fields, key: string): number =>
  integerIn(fields, key, 0, Number.MAX_SAFE_INTEGER);
