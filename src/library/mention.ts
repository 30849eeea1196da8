/**
 * Whether a line only speaks of a fault: it says that there is none, what to do if there were one, or it is a line of a
 * program, a comment or a setting. The words of a fault are then no sign of it.
 */

/** Lines of programs that jobs print, with what they would say if they failed; comments; settings of the environment. */
const SOURCE =
  /^\s*(?:raise \w[\w.]*\(|assert\b.*,\s*f?["']|(?:el)?if\b[^:]*:\s*(?:$|\w[\w.]*[( ])|def \w+\(|return\b|(?:#|\/\/|\/\*)\s|(?:logger|log|logging|print|warnings)\b[.\w]*\(|(?:export |set )?[A-Z][A-Z0-9_]{2,60}=)/;
/** "no GPU has fallen off …", "without any …": up to four words further on. */
const DENIED = /\b(?:no|never|without|neither|nor)\s+(?:(?!one\b)[\w'"`-]+\s+){0,4}['"`]?$/i;
/** "0 CUDA out of memory errors". */
const NONE_BEFORE = /(?:^|[:,;=(|]\s*|\b(?:had|with|found|saw|of)\s+)(?:0|zero|no)\s+['"`]?$/i;
const COUNTED = /^.{0,60}?\b(?:errors|events|failures|faults|losses|occurrences|times|hits)\b/i;
/** "Xid errors: 0", "OOM killer events: none". */
const NONE_AFTER =
  /^['"`)]?(?:\s+(?:killer|errors?|events?|counts?|failures?|faults?|occurrences|kills|detected|found|seen)){0,3}\s*[:=]\s*(?:0(?![\d.:=x])|none\b|(?:no|false)\s*(?:[,;.)\]]|$))/i;
/** What somebody should do if it happened, or to keep it from happening; or when it happened once. */
const SUPPOSED =
  /(?:^|[.:;!?>*(-]\s*)(?:if|when(?:ever)?|in case|should|unless|to (?:avoid|prevent|fix|debug|reduce|work around|get rid of))\s(?!(?:is|failed)\b)[^.;]*$|\b(?:tip|hint|note|faq|troubleshooting)\b\s*:?[^.;]*\b(?:if|when|avoid|prevent|may|might|can|could)\b[^.;]*$|\b(?:for example|for instance|e\.g\.|such as|how to|what (?:is|does|means)|why (?:do|does|is))\b[^.;]*$|\b(?:previous|earlier|last|former) (?:run|job|attempt|time|training)\b[^.;]*$/i;

/** `from`, `to`: where in the line the fault's own words stand. */
export function isMention(line: string, from: number, to: number): boolean {
  const before = line.slice(Math.max(0, from - WITHIN), from);
  const after = line.slice(to, to + WITHIN);
  return (
    SOURCE.test(line) ||
    DENIED.test(before) ||
    (NONE_BEFORE.test(before) && COUNTED.test(line.slice(from, to + WITHIN))) ||
    NONE_AFTER.test(after) ||
    SUPPOSED.test(before)
  );
}

const WITHIN = 200;
