/** Patterns of names in configurations: * is any text, ? any character. */

/** Whether a whole name fits; steps over the text once for each star, so no pattern takes long. */
export function fits(name: string, pattern: string): boolean {
  let at = 0;
  let p = 0;
  let star = -1;
  let mark = 0;
  while (at < name.length) {
    if (
      p < pattern.length &&
      (pattern[p] === "?" || pattern[p] === name[at]) &&
      pattern[p] !== "*"
    ) {
      at++;
      p++;
    } else if (pattern[p] === "*") {
      star = p++;
      mark = at;
    } else if (star >= 0) {
      p = star + 1;
      at = ++mark;
    } else return false;
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}

export function fitsAny(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => fits(name, pattern));
}

/** The same as one expression for databases, whose engine (RE2) takes linear time. No pattern fits nothing. */
export function patternsExpression(patterns: readonly string[]): string {
  const parts = patterns.map((pattern) =>
    pattern.replace(/[^\w-]/gu, (sign) => {
      if (sign === "*") return ".*";
      return sign === "?" ? "." : `\\x{${sign.codePointAt(0)!.toString(16)}}`;
    }),
  );
  return parts.length === 0 ? "^$^" : `^(?:${parts.join("|")})$`;
}
