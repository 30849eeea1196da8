/**
 * The judge of a job, fed with what its agents tell: columns of slots become blocks, blocks become judgements. It runs in a
 * thread of its own (judge-thread.ts), or here where the clock is set.
 */
import { BlockBuilder, type ToldShares } from "../../../methods/slow/online/blocks.ts";
import { type JudgedJob, OnlineJudge } from "../../../methods/slow/online/online-judge.ts";
import type { LiveJudgement } from "../../../model/live-judgement.ts";
import { SLOT_MS } from "../../../model/rank-shares.ts";

/** Whom to compare, and the keys of groups by which agents tell of wires. */
export interface JudgedLayout {
  readonly job: JudgedJob;
  readonly wireKeys: readonly string[];
}

/** What the judge of a job is told: plain data, so that it can cross to a thread. */
export type ToJudge =
  | { readonly say: "layout"; readonly layout: JudgedLayout }
  | { readonly say: "shares"; readonly told: ToldShares; readonly nowMs: number }
  | {
      readonly say: "iterations";
      readonly endMs: readonly number[];
      readonly durationMs: readonly number[];
    }
  /** How replicas share out their micro-batches from a moment on; null: equally. */
  | { readonly say: "micro-batches"; readonly shares: string | null; readonly fromMs: number }
  | { readonly say: "tick"; readonly nowMs: number };

/** Each session counts its culprits from anew: from 1 up where micro-batches are shared out equally, from -1 down where not. */
export interface SessionJudgement {
  readonly session: number;
  readonly judgement: LiveJudgement;
}

/** Reports that wait for the first layout: agents introduce themselves one after the other. */
const MOST_WAITING = 512;

interface Told {
  readonly told: ToldShares;
  /** As it came. */
  readonly nowMs: number;
}

interface Session {
  readonly number: number;
  readonly judge: OnlineJudge;
  blocks: BlockBuilder;
  state: LiveJudgement["state"];
}

export class JudgeHost {
  #layout: JudgedLayout | null = null;
  /** One that came while somebody was slow: another judge would have to learn first what is healthy. */
  #nextLayout: JudgedLayout | null = null;
  #equal: Session | null = null;
  #uneven: Session | null = null;
  #isUneven = false;
  /** Slots before it were told with other shares of micro-batches. */
  #fromMs = -Infinity;
  #sessions = 0;
  #waiting: Told[] = [];

  take(message: ToJudge): SessionJudgement[] {
    switch (message.say) {
      case "layout":
        this.#lay(message.layout);
        return [];
      case "shares":
        this.#shares(message);
        return [];
      case "iterations":
        for (const [i, endMs] of message.endMs.entries())
          this.#session?.blocks.iterationEnded(endMs, message.durationMs[i]!);
        return [];
      case "micro-batches":
        this.#reshared(message.shares !== null, message.fromMs);
        return [];
      case "tick":
        return this.#judge(message.nowMs);
    }
  }

  get #session(): Session | null {
    return this.#isUneven ? this.#uneven : this.#equal;
  }

  #begin(layout: JudgedLayout): Session {
    this.#sessions++;
    return {
      number: this.#isUneven ? -this.#sessions : this.#sessions,
      judge: new OnlineJudge(layout.job),
      blocks: new BlockBuilder(layout.job, layout.wireKeys),
      state: "learning",
    };
  }

  #lay(layout: JudgedLayout): void {
    if (this.#session?.state === "slow") {
      this.#nextLayout = layout;
      return;
    }
    this.#nextLayout = null;
    this.#layout = layout;
    // Of whatever the other session knew, the ranks are others now.
    this.#equal = this.#uneven = null;
    const session = this.#begin(layout);
    if (this.#isUneven) this.#uneven = session;
    else this.#equal = session;
    for (const { told, nowMs } of this.#waiting) session.blocks.take(told, nowMs);
    this.#waiting = [];
  }

  #shares({ told, nowMs }: Told): void {
    if (told.firstSlot * SLOT_MS < this.#fromMs) return;
    const session = this.#session;
    if (session) session.blocks.take(told, nowMs);
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push({ told, nowMs });
  }

  /** With equal shares again, the judge that knows the job goes on where it stopped; with others another begins. */
  #reshared(isUneven: boolean, fromMs: number): void {
    this.#isUneven = isUneven;
    this.#fromMs = fromMs;
    const layout = this.#layout;
    if (!layout) return;
    this.#uneven = isUneven ? this.#begin(layout) : null;
    this.#equal ??= isUneven ? null : this.#begin(layout);
    if (!isUneven) this.#equal!.blocks = new BlockBuilder(layout.job, layout.wireKeys);
  }

  #judge(nowMs: number): SessionJudgement[] {
    const session = this.#session;
    if (!session) return [];
    const judgements = session.blocks.due(nowMs).map((block) => {
      const judgement = session.judge.step(block);
      session.state = judgement.state;
      return { session: session.number, judgement };
    });
    if (this.#nextLayout && session.state !== "slow") this.#lay(this.#nextLayout);
    return judgements;
  }
}
