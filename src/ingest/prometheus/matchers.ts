/** Label matchers as users write them: job="train",cluster=~"a.*" (with or without braces). */
import { UserError } from "../../base/errors.ts";

export interface Matcher {
  readonly label: string;
  readonly op: "=" | "!=" | "=~" | "!~";
  readonly value: string;
}

const LABEL = /\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*/y;
const QUOTED = /"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`/y;
const BETWEEN = /\s*(,|$)/y;
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  a: "\u0007",
  b: "\b",
  f: "\f",
  v: "\v",
};

export function parseMatchers(text: string): readonly Matcher[] {
  const inner = text.trim().replace(/^\{([^]*)\}$/, "$1");
  const matchers: Matcher[] = [];
  let at = 0;
  while (inner.slice(at).trim() !== "") {
    LABEL.lastIndex = at;
    const [, label, op] = LABEL.exec(inner) ?? malformed(text, inner, at);
    QUOTED.lastIndex = LABEL.lastIndex;
    const [, double, single, raw] =
      QUOTED.exec(inner) ?? malformed(text, inner, LABEL.lastIndex, "a value in quotes");
    BETWEEN.lastIndex = QUOTED.lastIndex;
    if (!BETWEEN.test(inner)) malformed(text, inner, QUOTED.lastIndex, "a comma");
    at = BETWEEN.lastIndex;
    if (label === "__name__") {
      throw new UserError(
        `--match ${text} names a metric, but metrics are chosen by what they measure`,
        'Leave __name__ out and give labels only: job="train".',
        2,
      );
    }
    matchers.push({
      label: label!,
      op: op as Matcher["op"],
      value: raw ?? unescaped(double ?? single!),
    });
  }
  return matchers;
}

function malformed(text: string, inner: string, at: number, wanted = 'label="value"'): never {
  const rest = inner.slice(at).trim();
  throw new UserError(
    `--match ${text} is malformed: ${wanted} is expected ${rest === "" ? "at its end" : `before ${rest}`}`,
    'Write label matchers as in PromQL: job="train",cluster=~"a.*" (mind the shell\'s quotes).',
    2,
  );
}

function unescaped(text: string): string {
  return text.replace(/\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^])/g, (_, code: string) =>
    code.length > 1 ? String.fromCharCode(parseInt(code.slice(1), 16)) : (ESCAPES[code] ?? code),
  );
}

/** As PromQL's selector; the same for any way of quoting. */
export function selector(name: string, matchers: readonly Matcher[]): string {
  if (matchers.length === 0 && name !== "") return name;
  return `${name}{${matchers.map(({ label, op, value }) => `${label}${op}${quoted(value)}`).join(",")}}`;
}

function quoted(value: string): string {
  return `"${value.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")}"`;
}
