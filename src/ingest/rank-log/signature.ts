import type { Cause } from "../../model/cause.ts";
import type { FailureClass } from "../failure-class.ts";

/** How a kind of failure is recognised in a line or in an exception's text. */
export interface Signature extends FailureClass {
  /** One of these stands in the text, to the letter; asked before `pattern`, because it is cheap. */
  readonly needles: readonly string[];
  readonly pattern?: RegExp;
  /**
   * Whether the text is enough by itself. False for what means a failure only as an exception's text: a log
   * may speak of an ImportError that it survived.
   */
  readonly alone: boolean;
}

/** The first that fits: the lists are ordered, the telling before the general. */
export function firstMatch(
  signatures: readonly Signature[],
  text: string,
  asException: boolean,
): Signature | null {
  for (const signature of signatures) {
    if (!asException && !signature.alone) continue;
    if (!signature.needles.some((needle) => text.includes(needle))) continue;
    if (!signature.pattern || signature.pattern.test(text)) return signature;
  }
  return null;
}

/** A failure of the process that prints it. */
export function own(
  signature: string,
  cause: Cause,
  needles: readonly string[],
  pattern?: RegExp,
): Signature {
  return { signature, role: "own", cause, needles, alone: true, ...(pattern ? { pattern } : {}) };
}

/** The kernel tells of waiting, see FailureRole. */
export function stall(
  signature: string,
  cause: Cause,
  needles: readonly string[],
  pattern?: RegExp,
): Signature {
  return { ...own(signature, cause, needles, pattern), role: "stall" };
}

/** Only as an exception's text. */
export function raised(
  signature: string,
  cause: Cause,
  needles: readonly string[],
  pattern?: RegExp,
): Signature {
  return { ...own(signature, cause, needles, pattern), alone: false };
}

/** May be the aftermath of somebody else's failure, see FailureClass. */
export function orAftermath(signature: Signature): Signature {
  return { ...signature, canBeAftermath: true };
}
