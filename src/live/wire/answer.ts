/** A request answered on the agent's side, whatever happens: as the frames that go back. */
import { harmless } from "../../base/text.ts";
import { decodeFrame, encodeParts, encodeReply, FrameError } from "./codec.ts";
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
      const frame = encodeReply(id, await answer(request));
      if (frame.length > LIMITS.replyBytes) {
        return refusal(id, `the answer is larger than ${LIMITS.replyBytes} bytes`);
      }
      const read = decodeFrame(frame);
      if (read instanceof FrameError) return refusal(id, `the answer is broken: ${read.message}`);
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
