/** Requests that wait for their answer, and answers that come in parts: the service's side. */
import { decodeFrame, FrameError, type PartFrame, type ReplyFrame } from "./codec.ts";
import type { AgentReply, AgentRequest } from "./messages.ts";
import { LIMITS } from "./messages.ts";
import { misfit } from "./reply-frame.ts";

export interface PendingReplies {
  /** Resolves with the answer to the request that `send` gets an id for. */
  ask(request: AgentRequest, timeoutMs: number, send: (id: number) => void): Promise<AgentReply>;
  /** Bytes that belonged to an answer that is awaited; 0 where nobody waits (any more). */
  take(frame: ReplyFrame | PartFrame, frameBytes: number): number;
  failAll(why: string): void;
  readonly size: number;
}

interface Pending {
  readonly request: AgentRequest;
  readonly timer: NodeJS.Timeout;
  readonly parts: (Uint8Array | undefined)[];
  partBytes: number;
  missing: number;
  resolve(reply: AgentReply): void;
  reject(error: Error): void;
}

export function createPendingReplies(agent: string): PendingReplies {
  const pending = new Map<number, Pending>();
  let lastId = 0;

  const finish = (id: number): Pending | undefined => {
    const one = pending.get(id);
    if (one !== undefined) clearTimeout(one.timer);
    pending.delete(id);
    return one;
  };
  const fail = (id: number, why: string): void =>
    finish(id)?.reject(new Error(`agent ${agent}: ${why}`));
  const succeed = (id: number, reply: AgentReply): void => {
    const one = finish(id);
    if (one === undefined) return;
    const why = misfit(one.request, reply);
    if (why === null) one.resolve(reply);
    else one.reject(new Error(`agent ${agent}: ${why}`));
  };
  const addPart = (one: Pending, { id, index, parts, bytes }: PartFrame): void => {
    if (one.parts.length === 0) {
      one.parts.length = parts;
      one.missing = parts;
    }
    if (one.parts.length !== parts || one.parts[index] !== undefined) {
      fail(id, "the parts of its answer do not fit together");
      return;
    }
    // A copy: the part is a view into whatever the socket read, which would be kept whole.
    one.parts[index] = new Uint8Array(bytes);
    one.partBytes += bytes.length;
    one.missing--;
    if (one.partBytes > LIMITS.replyBytes) fail(id, "its answer is too large");
    else if (one.missing === 0) {
      const whole = new Uint8Array(one.partBytes);
      let at = 0;
      for (const part of one.parts) {
        whole.set(part!, at);
        at += part!.length;
      }
      const frame = decodeFrame(whole);
      if (frame instanceof FrameError) fail(id, `its answer is broken: ${frame.message}`);
      else if (frame.type !== "reply" || frame.id !== id) fail(id, "its answer is broken");
      else succeed(id, frame.reply);
    }
  };

  return {
    get size() {
      return pending.size;
    },
    async ask(request, timeoutMs, send) {
      const id = ++lastId;
      return await new Promise<AgentReply>((resolve, reject) => {
        const timer = setTimeout(() => fail(id, `no answer within ${timeoutMs} ms`), timeoutMs);
        pending.set(id, { request, timer, parts: [], partBytes: 0, missing: 0, resolve, reject });
        try {
          send(id);
        } catch (error) {
          fail(id, error instanceof Error ? error.message : "it cannot be asked");
        }
      });
    },
    take(frame, frameBytes) {
      const one = pending.get(frame.id);
      if (one === undefined) return 0;
      if (frame.type === "reply") succeed(frame.id, frame.reply);
      else addPart(one, frame);
      return frameBytes;
    },
    failAll(why) {
      for (const id of pending.keys()) fail(id, why);
    },
  };
}
