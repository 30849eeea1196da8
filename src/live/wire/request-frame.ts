/** What the service asks, as the head of a frame. Whatever it asks for, the answer's size is bounded before it is made. */
import {
  type Fields,
  fieldsOf,
  flagIn,
  integerIn,
  integersIn,
  listIn,
  nameIn,
  orNull,
  rankIn,
  ranksIn,
  textIn,
} from "./fields.ts";
import { FrameError } from "./frame.ts";
import type { AgentRequest, DurationsRequest, Pick } from "./messages.ts";
import { ASKS, LIMITS } from "./messages.ts";

/** The longest that an agent waits for ranks. */
export const MOST_WAIT_MS = 600_000;
const MOST_STEPS = 1000;
const MOST_REPEATS = 100;
const MOST_TEST_ROUNDS = 64;
const MOST_MB = 1024;
const MOST_ITERATIONS = 65_536;
const MOST_WIRE_ITERATIONS = 256;
const MOST_PICKS = 65_536;
const MOST_PLACES = 1 << 20;
const MOST_DURATIONS = LIMITS.replyBytes / 4;

/** Throws FrameError. */
export function readRequest(head: Fields): AgentRequest {
  const word = textIn(head, "ask", 64);
  const about = { job: nameIn(head, "job"), run: nameIn(head, "run") };
  const ask = ASKS.find((known) => known === word);
  switch (ask) {
    case "program":
      return {
        ask,
        ...about,
        rank: rankIn(head, "rank"),
        iteration: orNull(head, "iteration", iterationIn),
      };
    case "durations":
      return readDurations(head, about);
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

function readDurations(
  head: Fields,
  about: { readonly job: string; readonly run: string },
): DurationsRequest {
  const iterations = integersIn(head, "iterations", MOST_ITERATIONS, 0, Number.MAX_SAFE_INTEGER);
  const picks = listIn(head, "picks", MOST_PICKS, readPick);
  const request: DurationsRequest = { ask: "durations", ...about, iterations, picks };
  if (durationsOf(request) > MOST_DURATIONS)
    throw new FrameError("more durations than a reply holds");
  return request;
}

function readPick(value: unknown): Pick {
  const fields = fieldsOf(value, "a pick");
  const of = fieldsOf(fields["of"], "what a pick is of");
  const rank = rankIn(fields, "rank");
  if ("places" in of) return { rank, of: { places: placesIn(of, "places") } };
  const nth = placesIn(of, "nth");
  if ("group" in of) return { rank, of: { group: textIn(of, "group", 512), nth } };
  return { rank, of: { sends: flagIn(of, "sends"), peer: rankIn(of, "peer"), nth } };
}

const placesIn = (fields: Fields, key: string): number[] =>
  integersIn(fields, key, MOST_PLACES, 0, 2 ** 31);

/** Entries that the answer has. */
export function durationsOf({ iterations, picks }: DurationsRequest): number {
  let places = 0;
  for (const { of } of picks) places += "places" in of ? of.places.length : of.nth.length;
  return places * iterations.length;
}
