/**
 * The switch for all actions. Off holds at once in this process, over restarts, and for every service that shares the
 * history. Dry runs and undoing stay possible: the one changes nothing, the other only takes back.
 */
import { harmless } from "../../../base/text.ts";
import type { History } from "../../../history/history.ts";
import { type AuditWord, Refusal, type SwitchState } from "../view.ts";
import { messageOf } from "./run-action.ts";

const KEY = "actions/switch";
type Position = Pick<SwitchState, "isOn" | "says">;
const ON: Position = { isOn: true, says: "" };

export interface SwitchOptions {
  /** false: the configuration says so, and nobody can switch them on. */
  readonly enabled: boolean;
  /** Whether anything could be run: hooks, drivers, or shares of micro-batches. */
  readonly canRun: boolean;
  nowMs(this: void): number;
  /** Rejects where it is away. */
  readonly history: Pick<History, "document" | "putDocument">;
  audit(this: void, who: string, what: AuditWord, detail: string): Promise<void>;
  changed(this: void, state: SwitchState): void;
  log(this: void, line: string): void;
}

export class ActionsSwitch {
  readonly #options: SwitchOptions;
  #state: Position;
  /** What this process was asked for and could not keep. */
  #isUnsaved = false;

  constructor(options: SwitchOptions) {
    this.#options = options;
    this.#state = options.enabled
      ? ON
      : { isOn: false, says: "actions are switched off in the configuration (actions.enabled)" };
  }

  get state(): SwitchState {
    return { ...this.#state, canRun: this.#options.canRun };
  }

  /** One sentence where nothing may be run. Another service may have been asked, so the store is. */
  async off(): Promise<string | null> {
    await this.refresh();
    return this.#state.isOn ? null : this.#state.says;
  }

  /** A store that is away leaves it as it was. */
  async refresh(): Promise<void> {
    const { enabled, history } = this.#options;
    if (!enabled || this.#isUnsaved) return;
    try {
      this.#set(stateOf(await history.document(KEY)));
    } catch {
      // Known from before.
    }
  }

  async switch(isOn: boolean, who: string): Promise<SwitchState> {
    const { enabled, nowMs, history, audit, log } = this.#options;
    if (!enabled) throw new Refusal(409, this.#state.says);
    const at = new Date(nowMs()).toISOString();
    const says = isOn ? "" : `actions were switched off by ${harmless(who)} at ${at}`;
    const word = isOn ? "on" : "off";
    if (isOn) {
      // Whatever lets things run again is written down first.
      await audit(who, word, "all actions").catch(() => {
        throw new Refusal(503, "the audit trail cannot be written at the moment, so they stay off");
      });
      await history.putDocument(KEY, { isOn, says }).catch((error: unknown) => {
        throw new Refusal(503, `they stay off, for it cannot be kept: ${messageOf(error)}`);
      });
      this.#isUnsaved = false;
      this.#set(ON);
      return this.state;
    }
    this.#set({ isOn, says });
    this.#isUnsaved = true;
    await audit(who, word, "all actions").catch(() => log("actions: the audit trail lacks: off"));
    try {
      await history.putDocument(KEY, { isOn, says });
      this.#isUnsaved = false;
    } catch (error) {
      const why = messageOf(error);
      this.#set({ isOn, says: `${says}; not kept over a restart: ${why}` });
    }
    return this.state;
  }

  #set(state: Position): void {
    const { isOn, says } = this.#state;
    if (state.isOn === isOn && state.says === says) return;
    this.#state = state;
    this.#options.changed(this.state);
  }
}

function stateOf(document: unknown): Position {
  const { isOn, says } = (document ?? {}) as { isOn?: unknown; says?: unknown };
  return isOn === false ? { isOn, says: typeof says === "string" ? says : "actions are off" } : ON;
}
