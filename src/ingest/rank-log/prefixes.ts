/**
 * Who wrote a line, from what launchers and libraries put before it:
 *   [rank3]: text         PyTorch (c10d logging, excepthook): the global rank
 *   [default3]:text       torchrun --tee (role and LOCAL rank)
 *   3: text               srun --label (the task, which is the rank where one task runs one rank)
 *   [1,3]<stderr>:text    mpirun --tag-output
 *   (Worker[rank=3] pid=77) text    Ray
 *   [host1:0]text         torchrun with a custom prefix: keeps writers apart, says nothing about ranks
 *   2026-11-15 00:41:37 [INFO] [rank3] text    an application's own logger
 * "[Rank 3]" inside c10d messages is the rank within a process group and is not looked at here.
 */

const RAY = /^\(([^()]{0,120}?)pid=(\d{1,10})[^()]{0,80}\) ?/;
const RAY_RANK = /\[rank=(\d{1,6})\]/;
const MPI = /^\[\d{1,6},(\d{1,6})\]<std(?:out|err)>:? ?/;
const ROLE = /^\[([A-Za-z_][A-Za-z_-]{0,30})(\d{1,6})\]:/;
const HOST_TAG = /^\[([A-Za-z][\w.-]{0,60}:\d{1,6})\]/;
// eslint-disable-next-line no-control-regex
const ANSI = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
/** Further in, "[rank" is part of what the line says. */
const RANK_WITHIN = 100;

const ZERO = 48;
const NINE = 57;
const SPACE = 32;
const OPEN_PAREN = 40;
const COLON = 58;
const EQUALS = 61;
const OPEN = 91;
const CLOSE = 93;

/** Reused for every line: a log has millions. -1 and "" stand for unknown. */
export class Prefix {
  rank = -1;
  /** torchrun's local rank. */
  local = -1;
  /** srun's task. */
  task = -1;
  /** A writer that is known by its prefix, which does not name its rank. */
  writer = "";
  /** What is left of the line. */
  body = "";

  read(line: string): void {
    this.rank = this.local = this.task = -1;
    this.writer = "";
    let at = 0;
    let first = line.charCodeAt(0);
    if (first >= ZERO && first <= NINE) {
      at = this.#task(line);
      first = line.charCodeAt(at);
    }
    if (first === OPEN_PAREN) {
      at += this.#ray(at === 0 ? line : line.slice(at));
      first = line.charCodeAt(at);
    }
    if (first === OPEN) at = this.#bracket(line, at);
    this.body = at === 0 ? line : line.slice(at);
    if (this.rank < 0) this.#within(line, at);
  }

  /** "3: text"; the space tells it from a time of day. */
  #task(line: string): number {
    let i = 1;
    while (i < 7 && isDigit(line.charCodeAt(i))) i++;
    if (line.charCodeAt(i) !== COLON || line.charCodeAt(i + 1) !== SPACE) return 0;
    this.task = Number(line.slice(0, i));
    return i + 2;
  }

  #ray(line: string): number {
    const m = RAY.exec(line);
    if (!m) return 0;
    this.writer = `pid ${m[2]}`;
    const rank = RAY_RANK.exec(m[1] as string);
    if (rank) this.rank = Number(rank[1]);
    return m[0].length;
  }

  #bracket(line: string, at: number): number {
    if (line.startsWith("rank", at + 1)) {
      const end = this.#rankAt(line, at);
      if (end < 0) return at;
      let body = line.charCodeAt(end) === COLON ? end + 1 : end;
      if (line.charCodeAt(body) === SPACE) body++;
      return body;
    }
    const second = line.charCodeAt(at + 1);
    const rest = at === 0 ? line : line.slice(at);
    if (isDigit(second)) {
      const m = MPI.exec(rest);
      if (!m) return at;
      this.rank = Number(m[1]);
      return at + m[0].length;
    }
    const role = ROLE.exec(rest);
    // A single letter and a number is glog's level and date, not a role.
    if (role && (role[1] as string).length > 1) {
      this.local = Number(role[2]);
      const body = at + role[0].length;
      // torchrun's own prefix may be followed by PyTorch's.
      return line.charCodeAt(body) === OPEN ? this.#bracket(line, body) : body;
    }
    const tag = HOST_TAG.exec(rest);
    if (!tag) return at;
    this.writer = tag[1] as string;
    return at + tag[0].length;
  }

  /** "[rank3]", "[rank: 3]", "[rank=3]": the index after it, or -1. */
  #rankAt(line: string, open: number): number {
    let i = open + 5;
    const c = line.charCodeAt(i);
    if (c === COLON || c === EQUALS) i++;
    while (line.charCodeAt(i) === SPACE) i++;
    const start = i;
    while (i < start + 7 && isDigit(line.charCodeAt(i))) i++;
    if (i === start || line.charCodeAt(i) !== CLOSE) return -1;
    this.rank = Number(line.slice(start, i));
    return i + 1;
  }

  #within(line: string, from: number): void {
    const at = line.indexOf("[rank", from);
    if (at > 0 && at < RANK_WITHIN) this.#rankAt(line, at);
  }
}

export function stripAnsi(line: string): string {
  return line.includes("\u001b") ? line.replace(ANSI, "") : line;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
