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

/** Whether a name could fit both; time is the product of their lengths. */
export function overlap(a: string, b: string): boolean {
  // Whether the rest of `a` from i on and that of `b` from j on have a name in common: from the ends.
  let below: readonly boolean[] = [];
  for (let i = a.length; i >= 0; i--) {
    const row: boolean[] = [];
    for (let j = b.length; j >= 0; j--) {
      const isSame = a[i] === b[j] || a[i] === "?" || b[j] === "?";
      if (a[i] === "*") row[j] = below[j]! || (j < b.length && row[j + 1]!);
      else if (b[j] === "*") row[j] = row[j + 1]! || (i < a.length && below[j]!);
      else if (i === a.length || j === b.length) row[j] = i === a.length && j === b.length;
      else row[j] = isSame && below[j + 1]!;
    }
    below = row;
  }
  return below[0]!;
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
