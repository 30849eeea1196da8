/**
 * The same messages as another site would have written them: other headers, several kinds in one file, other numbers,
 * addresses and hosts. What only knew the sets' own wording fails here.
 */
import type { ParsingSet } from "./parsing-truth.ts";

const pad = (n: number, width = 2): string => String(n).padStart(width, "0");

/** How a line may begin, given a second of the day and a number. */
const HEADERS: readonly ((second: number, n: number) => string)[] = [
  (s, n) => `[2031-05-06 ${clock(s)},${pad(n % 1000, 3)}] [INFO] [step_${n % 7}.py:${n}:run] `,
  (s, n) => `2031-05-06T${clock(s)}.${pad(n % 1000, 3)}Z WARN pkg.mod${n % 5} - `,
  (s, n) => `May  6 ${clock(s)} node${n % 40} agentd[${n}]: `,
  (s, n) => `I0506 ${clock(s)}.${pad(n, 6)} ${n} agent.cc:${n % 500}] `,
  (s, n) => `[rank${n % 64}]:[W506 ${clock(s)}.${pad(n, 9)} agent.cpp:${n % 500}] `,
  (s, n) => `gpu-a-${n % 30}:${n}:${n + 1} [${n % 8}] NCCL INFO `,
  (_, n) => `[default${n % 8}]:`,
  (s) => `[Tue May  6 ${clock(s)} 2031] `,
  (s, n) => `2031-05-06 ${clock(s)}.${pad(n % 1000, 3)} | INFO     | pkg.mod:run:${n % 900} - `,
  () => "WARNING:pkg.mod:",
];

export function mutated(set: ParsingSet, seed: number): ParsingSet {
  const random = generator(seed);
  const kinds = Array.from({ length: 3 }, () => HEADERS[Math.floor(random() * HEADERS.length)]!);
  const hosts = new Map<string, string>();
  const lines = set.contents.map((content, i) => {
    const header = kinds[Math.floor(random() * kinds.length)]!;
    return header(i * 7, Math.floor(random() * 1e5)) + otherValues(content, random, hosts);
  });
  return { ...set, lines };
}

/** Other digits of the same number, other names for hosts; zeros and ones stay, as they may mean yes and no. */
function otherValues(text: string, random: () => number, hosts: Map<string, string>): string {
  const renamed = text.replaceAll(/\b(?:[a-z][\w-]*\.){2,}(?:com|net|org|edu)\b/g, (host) => {
    let other = hosts.get(host);
    if (other === undefined) {
      other = `m${hosts.size}.site-${hosts.size % 9}.example.org`;
      hosts.set(host, other);
    }
    return other;
  });
  return renamed.replaceAll(/(?<![A-Za-z\d])[2-9]\d{2,}(?![A-Za-z\d])/g, (digits) =>
    digits.replaceAll(/\d/g, () => String(2 + Math.floor(random() * 8))),
  );
}

function clock(second: number): string {
  return `${pad(Math.floor(second / 3600) % 24)}:${pad(Math.floor(second / 60) % 60)}:${pad(second % 60)}`;
}

/** Park and Miller's. */
function generator(seed: number): () => number {
  let state = (seed % 2147483646) + 1;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}
