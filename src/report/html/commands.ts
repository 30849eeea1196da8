/**
 * Finds the shell commands and settings inside a sentence of advice, so that they can be shown as code
 * and copied. Text between backquotes is a command; so is what begins with a tool that our advice names
 * and goes on with options.
 */

const TOOLS =
  "py-spy|nvidia-smi|dmesg|ps|kill|ncclras|dcgmi|ibstat|ethtool|journalctl|sacct|scontrol";
/** A number belongs to the option before it ("--pid 705"); elsewhere it is the sentence's. */
const OPTION = String.raw`-{1,2}[A-Za-z][\w-]*(?:=\S+| \d+(?!\w|\.\d))?`;
const WORD = String.raw`(?:dump|diag|show)\b|<\w+>|\w+(?:,\w+)+|${OPTION}|\| (?:grep -i \w+|head\b)`;
const COMMAND = new RegExp(
  String.raw`${"`"}([^${"`"}]+)${"`"}|(?<![\w-])((?:${TOOLS})(?: (?:${WORD}))+|[A-Z][A-Z0-9]*_[A-Z0-9_]*=[^\s,;)]+)`,
  "g",
);

interface Piece {
  readonly text: string;
  readonly isCommand: boolean;
}

export function splitCommands(text: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(COMMAND)) {
    if (match.index > end) pieces.push({ text: text.slice(end, match.index), isCommand: false });
    pieces.push({ text: match[1] ?? match[2]!, isCommand: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end), isCommand: false });
  return pieces;
}
