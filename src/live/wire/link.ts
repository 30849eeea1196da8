/** The carrier that a URL names. */
import { openNatsLink } from "./nats-agent.ts";
import type { AgentLink, AgentLinkOptions } from "./transport.ts";
import { openWebSocketLink } from "./ws-agent.ts";

/** ws://, wss://, http://, https:// of a service; nats://, tls:// of a cluster. Throws UserError for any other URL. */
export function openAgentLink(options: AgentLinkOptions): AgentLink {
  return /^(nats|tls):/i.test(options.url) ? openNatsLink(options) : openWebSocketLink(options);
}
