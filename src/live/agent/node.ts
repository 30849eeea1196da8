/**
 * What an agent has in front of it: the ranks of one machine. Rings and logs of real processes implement it
 * (ring-node.ts), and a simulated machine of a rehearsal (fleet/). The agent itself (run-agent.ts) only carries.
 */
import type { AgentReply, AgentRequest, Report } from "../wire/messages.ts";

export interface Node {
  /** Everything that is new since the last call; called about once a second. Never throws. */
  tick(nowMs: number): readonly Report[];
  /** What a service that has never heard of us needs first: its jobs. */
  introduce(): readonly Report[];
  answer(request: AgentRequest): Promise<AgentReply>;
  close(): void;
}
