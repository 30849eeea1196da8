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
  wordIn,
} from "./fields.ts";
import { FrameError } from "./frame.ts";
import type { AgentRequest, DurationsRequest, Pick } from "./messages.ts";
import { LIMITS } from "./messages.ts";

const ASKS = [
  "program",
  "durations",
  "operators",
  "evidence",
] as const satisfies readonly AgentRequest["ask"][];
const MOST_ITERATIONS = 65_536;
const MOST_PICKS = 65_536;
const MOST_PLACES = 1 << 20;
const MOST_DURATIONS = LIMITS.replyBytes / 4;

/** Throws FrameError. */
export function readRequest(head: Fields): AgentRequest {
  const ask = wordIn(head, "ask", ASKS);
  const job = nameIn(head, "job");
  const run = nameIn(head, "run");
  switch (ask) {
    case "program":
      return {
        ask,
        job,
        run,
        rank: rankIn(head, "rank"),
        iteration: orNull(head, "iteration", iterationIn),
      };
    case "durations":
      return readDurations(head, job, run);
    case "operators":
      return {
        ask,
        job,
        run,
        rank: rankIn(head, "rank"),
        fromIteration: iterationIn(head, "fromIteration"),
        toIteration: iterationIn(head, "toIteration"),
      };
    case "evidence":
      return {
        ask,
        job,
        run,
        ranks: orNull(head, "ranks", (fields, key) => ranksIn(fields, key, LIMITS.ranksPerAgent)),
        records: integerIn(head, "records", 0, 2 ** 31),
        stacks: flagIn(head, "stacks"),
        logBytes: integerIn(head, "logBytes", 0, LIMITS.replyBytes),
      };
  }
}

const iterationIn = (fields: Fields, key: string): number =>
  integerIn(fields, key, 0, Number.MAX_SAFE_INTEGER);

function readDurations(head: Fields, job: string, run: string): DurationsRequest {
  const iterations = integersIn(head, "iterations", MOST_ITERATIONS, 0, Number.MAX_SAFE_INTEGER);
  const picks = listIn(head, "picks", MOST_PICKS, readPick);
  const request: DurationsRequest = { ask: "durations", job, run, iterations, picks };
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
