/** What sets a node apart, for people. */
import { cutText } from "../../base/text.ts";
import type { Difference, NodeEvidence } from "./spatial-evidence.ts";

const WORDS: Readonly<Record<Difference, string>> = {
  only: "no other node writes",
  lacks: "unlike the others, it does not write",
  more: "it writes far more often",
  fewer: "it writes far less often",
  first: "it is the first to write",
  variant: "its value differs in",
  named: "others name it in their errors",
  stopped: "it falls silent before the others",
};

export function nodeWords({ kind, template }: NodeEvidence, texts: readonly string[]): string {
  return template < 0 ? WORDS[kind] : `${WORDS[kind]} "${cutText(texts[template]!.trim(), 160)}"`;
}
