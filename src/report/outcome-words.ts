/** What became of an action, in sentences: what a hook or the service wrote, without its JSON. */
import type { IncidentAction } from "../model/incident.ts";

/** "Dry run: nothing was changed. It would run scontrol update nodename=node003 state=drain (within 60 s)." "" for nothing. */
export function outcomeWords({
  state,
  outcome,
  would,
}: Pick<IncidentAction, "state" | "outcome" | "would">): string {
  const isDry = state === "dry-run";
  const said = outcome === "" ? [] : [sentence(withoutJson(outcome))];
  if (would === undefined) return said.join("");
  const before = isDry
    ? "Dry run: nothing was changed. It would"
    : "A dry run since then: it would";
  return [...said, `${before} ${sentence(planWords(would))}`].join(" ");
}

/** What is about to happen: "run scontrol update nodename=node003 (within 60 s)". */
export function planWords(plan: string): string {
  const command = /^run (\[.*\]) (within [\d.]+ s)$/s.exec(plan);
  const words = command ? parsed(command[1]!) : null;
  if (command && Array.isArray(words)) return `run ${words.map(String).join(" ")} (${command[2]})`;
  const webhook = /^post to (\S+) (within [\d.]+ s): (.*)$/s.exec(plan);
  if (!webhook) return withoutJson(plan);
  const body = parsed(webhook[3]!) as { action?: unknown; do?: unknown; target?: unknown } | null;
  // A hook's message has the action as one of its parts, a driver's is the action.
  const action = (body?.do === undefined ? body?.action : body) as typeof body;
  const what = action ? `${String(action.do)} of ${String(action.target)}` : "it";
  return `ask ${webhook[1]} for ${what} (${webhook[2]})`;
}

/** The rest of the text; of a JSON answer its values. */
function withoutJson(text: string): string {
  const at = text.search(/[[{]/);
  const value = at < 0 ? null : parsed(text.slice(at));
  if (typeof value !== "object" || value === null) return text;
  const parts = Object.entries(value).map(([name, one]) =>
    typeof one === "string" || typeof one === "number" ? `${name} ${one}` : name,
  );
  return `${text.slice(0, at)}${parts.join(", ")}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
