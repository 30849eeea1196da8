/** Labels in Prometheus' text: `name="value",…` with \\, \" and \n escaped. */
const LABEL = /\s*("?)([A-Za-z_][\w.:/-]*)\1\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)/y;
const MAX_VALUE = 256;

/** null where they are not labels. */
export function labelsOf(text: string): Map<string, string> | null {
  const labels = new Map<string, string>();
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const at = LABEL.lastIndex;
    const found = LABEL.exec(text);
    if (!found) return text.slice(at).trim() === "" ? labels : null;
    const value = found[3]!;
    labels.set(found[2]!, (value.includes("\\") ? unescaped(value) : value).slice(0, MAX_VALUE));
  }
  return labels;
}

function unescaped(value: string): string {
  return value.replace(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));
}
