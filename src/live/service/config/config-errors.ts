/** What is wrong with a configuration file, in one line: where, and which word was probably meant. */
import type { z } from "zod";
import { harmless } from "../../../base/text.ts";

/** `tokens[0].scopes: …` */
export function issueLine(schema: z.ZodType, issues: readonly z.core.$ZodIssue[]): string {
  const [first] = issues;
  if (!first) return "is not valid";
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return `${pathWords(first.path)}${sentence(schema, first)}${more}`;
}

function sentence(schema: z.ZodType, issue: z.core.$ZodIssue): string {
  if (issue.code !== "unrecognized_keys") return harmless(issue.message);
  const wrong = issue.keys[0] ?? "";
  const known = keysAt(schema, issue.path);
  const near = nearest(wrong, known);
  const shown = harmless(wrong.slice(0, 64));
  return near === null
    ? `unknown key "${shown}"`
    : `unknown key "${shown}"; did you mean "${near}"?`;
}

function pathWords(path: readonly PropertyKey[]): string {
  let words = "";
  for (const part of path) {
    if (typeof part === "number") words += `[${part}]`;
    else words += (words === "" ? "" : ".") + harmless(String(part).slice(0, 64));
  }
  return words === "" ? "" : `${words}: `;
}

const ELEMENT = "[]";

/** Keys of the object that the schema has at a path. */
function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: unknown = schema;
  for (const part of path) {
    const inner = shapeOf(at);
    at = inner?.[typeof part === "number" ? ELEMENT : String(part)];
  }
  return Object.keys(shapeOf(at) ?? {});
}

/** An object's fields, or what a list is made of; null for what has neither. */
function shapeOf(schema: unknown): Readonly<Record<string, unknown>> | null {
  let at = schema as { def?: Definition } | undefined;
  while (at?.def?.innerType !== undefined) at = at.def.innerType;
  if (at?.def?.type === "object") return at.def.shape ?? null;
  if (at?.def?.type === "array") return { [ELEMENT]: at.def.element };
  return null;
}

interface Definition {
  readonly type?: string;
  readonly innerType?: { def?: Definition };
  readonly shape?: Readonly<Record<string, unknown>>;
  readonly element?: unknown;
}

export function nearest(word: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let least = Infinity;
  const cut = word.slice(0, 64).toLowerCase();
  for (const candidate of known) {
    const distance = edits(cut, candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Letters to change, add or leave out (Levenshtein). */
function edits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(
        Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + Number(a[i - 1] !== b[j - 1])),
      );
    row = next;
  }
  return row[b.length]!;
}
