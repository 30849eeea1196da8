/** Events that healthy jobs write, too, do not indicate a failure by themselves (L4 §5.2). */

export interface NormalPool {
  /** Whether healthy jobs write an event of this text. */
  has(text: string): boolean;
  /**
   * Whether the library's record of that id was met in healthy jobs: a template does not tell Xid 13 from Xid 48.
   * `isSettled`: it was over again, or only reported; what healthy jobs settled is normal no further than that.
   */
  hasRecord(id: string, isSettled: boolean): boolean;
  /** How many jobs it was made of. */
  readonly jobs: number;
}

/** By template: 1 where healthy jobs have it. Without a pool nothing is known to be normal. */
export function normalEvents(texts: readonly string[], pool: NormalPool | null): Uint8Array {
  const isNormal = new Uint8Array(texts.length);
  if (pool && pool.jobs > 0) {
    texts.forEach((text, template) => {
      if (pool.has(text)) isNormal[template] = 1;
    });
  }
  return isNormal;
}

/** How a healthy job's list of events says that it met a record of the library. */
export function recordEvent(id: string, isSettled: boolean): string {
  return isSettled ? `library: ${id}, settled` : `library: ${id}`;
}

/** Whether a list of healthy events has a record. */
export function hasRecordEvent(
  texts: ReadonlySet<string>,
  id: string,
  isSettled: boolean,
): boolean {
  return texts.has(recordEvent(id, false)) || (isSettled && texts.has(recordEvent(id, true)));
}
