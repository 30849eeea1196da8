/** Both ends of what carries messages. Two carriers implement them: WebSockets to the service's own port, and NATS. */
import type { AgentHello, AgentReply, AgentRequest, Report } from "./messages.ts";

export interface AgentLinkOptions {
  /** ws:// or wss:// of a service; nats:// of a cluster, several with commas. */
  readonly url: string;
  readonly token: string | null;
  readonly hello: AgentHello;
  /** Bytes of reports that are kept while nobody takes them; beyond, the oldest points go first. */
  readonly bufferBytes: number;
  /** PEM of the authority that the service's certificate is checked with; null for the system's. */
  readonly ca: string | null;
  answer(this: void, request: AgentRequest): Promise<AgentReply>;
  /** The link is there (again): what only a new service needs to know is to be said. */
  onConnected(this: void): void;
  /** One line for people, each kind of trouble once until it changes. */
  onTrouble(this: void, line: string): void;
}

/** The agent's end. Never throws, never blocks: what cannot be sent is kept, what cannot be kept is counted. */
export interface AgentLink {
  readonly isConnected: boolean;
  readonly dropped: { readonly reports: number; readonly points: number };
  readonly bufferedBytes: number;
  send(report: Report): void;
  /** Waits until what is buffered has been taken, or the time is over. */
  flush(withinMs: number): Promise<void>;
  close(): Promise<void>;
}

export interface AgentBusHandlers {
  /**
   * Reports of one agent come in order, each once as far as the carrier can tell; the service must bear one twice.
   * It is acknowledged when the promise is there.
   */
  report(this: void, agent: AgentHello, report: Report): Promise<void> | void;
  connected(this: void, agent: AgentHello): void;
  gone(this: void, agent: string): void;
  /** Another service asks about a job that is followed here. */
  asked(this: void, job: string, text: string): string;
  /** There is a job that somebody has to look after; said again every few seconds while it runs. */
  announced(this: void, job: string): void;
  onTrouble(this: void, line: string): void;
}

/** The service's end. */
export interface AgentBus {
  /**
   * From now on reports of this job come here, beginning with those of the last minutes that the carrier still has.
   * Without a broker all reports come anyway, and nothing is kept.
   */
  follow(job: string): Promise<void>;
  unfollow(job: string): Promise<void>;
  /** Rejects where the agent is not there, does not answer in time, or the answer is broken. */
  ask(agent: string, request: AgentRequest, timeoutMs: number): Promise<AgentReply>;
  /** Asks the service that follows the job; rejects where none does. Absent where there is but one service. */
  readonly askWatcher?: (job: string, text: string, timeoutMs: number) => Promise<string>;
  /** Frames and bytes so far, for /metrics. */
  readonly traffic: {
    readonly reports: number;
    readonly reportBytes: number;
    readonly replyBytes: number;
    readonly refused: number;
  };
  readonly agents: readonly AgentHello[];
  /** Tokens have changed: who was let in by one that does not hold as before is let go, and may come again. */
  recheck?(): void;
  /** Whether the broker can be reached; absent where there is none. */
  readonly broker?: "ok" | "away";
  close(): Promise<void>;
}

/**
 * Who looks after a job, and what is known of it for whoever does so next. Embedded there is one service and its
 * database; with NATS a lease and a document a job in its key-value store.
 */
export interface Coordinator {
  /** All jobs with a document. */
  list(): Promise<readonly string[]>;
  read(job: string): Promise<unknown>;
  /** null where another service holds it. */
  claim(job: string): Promise<Lease | null>;
  close(): Promise<void>;
}

export interface Lease {
  readonly job: string;
  /** Resolves when the document is safe from kill -9; rejects with LeaseLost where another service took over. */
  write(document: unknown): Promise<void>;
  readonly isHeld: boolean;
  /** Called once, when the lease is no longer ours. */
  onLost(listener: () => void): void;
  /** Given back in order, so that another may take it at once. */
  release(): Promise<void>;
}

export class LeaseLost extends Error {
  constructor(job: string) {
    super(`the lease of job ${job} is held by another service`);
    this.name = "LeaseLost";
  }
}
