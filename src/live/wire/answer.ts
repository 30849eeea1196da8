/** A request answered on the agent's side, whatever happens: as the frames that go back. */
import { harmless } from "../../base/text.ts";
import { encodeParts, encodeReply, replyDefect } from "./codec.ts";
import type { AgentReply, AgentRequest } from "./messages.ts";
import { LIMITS } from "./messages.ts";

/** Answers that are being made at once; a service that asks for more is told so. */
const MOST_AT_ONCE = 64;

export type Answerer = (id: number, request: AgentRequest) => Promise<readonly Uint8Array[]>;

/** Never rejects: what goes wrong becomes a RefusedReply. */
export function createAnswerer(answer: (request: AgentRequest) => Promise<AgentReply>): Answerer {
  let busy = 0;
  return async (id, request) => {
    if (busy >= MOST_AT_ONCE) return refusal(id, "the agent has too many requests at once");
    busy++;
    try {
      const reply = await answer(request);
      const defect = replyDefect(reply);
      if (defect !== null) return refusal(id, `the answer is broken: ${defect}`);
      const frame = encodeReply(id, reply);
      if (frame.length > LIMITS.replyBytes) {
        return refusal(id, `the answer is larger than ${LIMITS.replyBytes} bytes`);
      }
      return encodeParts(id, frame);
    } catch (error) {
      return refusal(id, error instanceof Error ? error.message : "the agent could not answer");
    } finally {
      busy--;
    }
  };
}

function refusal(id: number, why: string): readonly Uint8Array[] {
  return [encodeReply(id, { kind: "refused", why: harmless(why) })];
}
