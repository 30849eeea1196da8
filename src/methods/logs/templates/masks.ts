/**
 * Named masks for what varies in a line whatever program wrote it: numbers, addresses, paths, times. One pass of one
 * expression over the text; its alternatives go from the particular to the general.
 */

const MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const DAY = `(?:${DAYS.join("|")})`;
const NUMBER = String.raw`\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?`;
/** A word does not go on to the left. */
const BEGIN = String.raw`(?<![\w.])`;
const SIZES = "(?:[KMGTP]i?B|[KMGT]i?b(?:ps|it)?|[Bb]ytes?|[kKMGT](?:bytes?)?|B)(?:/s|ps)?";
const TIMES =
  "(?:ns|us|µs|ms|s|sec|secs|seconds?|msecs?|usecs?|milliseconds?|microseconds?|nanoseconds?|m|min|mins|minutes?|h|hrs?|hours?|d|days?)";
/** Names of hosts end in one of these; names of modules and classes do not, as a rule. */
const DOMAINS =
  "(?:com|net|org|edu|gov|mil|int|info|biz|arpa|local|localdomain|localnet|internal|intranet|lan|cluster|svc|cloud)";
/** Without those that are endings of files, such as "py", "cc" and "so". */
const COUNTRIES =
  "(?:a[eorstu]|b[degry]|c[achlnoyz]|d[ek]|e[cegsu]|f[ir]|g[eru]|h[kru]|i[delnrst]|j[op]|k[ehrwz]|l[tuv]|m[axy]|n[glopz]|om|p[aehklrt]|qa|r[ou]|s[aegik]|t[hnrvwz]|u[aksyz]|v[en]|z[aw])";
/** Bounded, and no label begins within another: names of thousands of parts must not be tried in every way. */
const LABEL = String.raw`[A-Za-z0-9][\w-]{0,62}`;
/** Endings of files, which are followed by a line rather than by a port. */
const SOURCES = "(?:py|pyx|cc|cpp|cxx|cu|cuh|hpp|go|rs|java|scala|kt|js|ts|rb|sh)";
const SEGMENT = String.raw`[\w.@%+~#=$-]`;

/** Signs without which a mask cannot match: it is not tried then, because trying is what costs. */
const DASH = 1;
const POINT = 2;
const SLASH = 4;
const COLON = 8;
const AT = 16;
/** One of the signs will do. */
const ANY_OF = 32;

/** By the name of the mask; the order is that of trying. */
const KINDS: readonly (readonly [name: string, needs: number, source: string])[] = [
  ["URL", COLON | SLASH, String.raw`\b[a-z][a-z0-9+.-]{1,15}:\/\/[^\s"'<>()\],;]+`],
  ["EMAIL", AT, String.raw`${BEGIN}[\w.+-]+@[\w-]+(?:\.[\w-]+)+`],
  ["UUID", DASH, String.raw`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`],
  [
    "TIME",
    COLON,
    String.raw`\b${DAY},? ${MONTH} {1,2}\d{1,2} \d\d:\d\d:\d\d(?: [A-Z]{2,5})?(?: \d{4})?|\b${MONTH} {1,2}\d{1,2} \d\d:\d\d:\d\d(?: \d{4})?`,
  ],
  [
    "TIME",
    ANY_OF | DASH | POINT | SLASH,
    String.raw`\b\d{4}[-/.]\d\d[-/.]\d\d(?:(?:[T _]|  ?)\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\w)|\b\d\d/\d\d/\d{2,4}(?: \d\d:\d\d:\d\d)?\b`,
  ],
  ["MAC", ANY_OF | COLON | DASH, String.raw`\b(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}\b`],
  [
    "PCI",
    COLON,
    String.raw`\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?\b(?!:[0-9a-fA-F])|\b0000:[0-9a-fA-F]{2}\b(?![:.]\d)`,
  ],
  [
    "IP",
    COLON,
    String.raw`(?<![\w.:])(?:[0-9a-fA-F]{0,4}:){3,7}(?:[0-9a-fA-F]{1,4})(?:%\w+)?(?![\w:])|(?<![\w:])[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4})*::(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4})*)?(?:%\w+)?(?![\w:])`,
  ],
  [
    "IP",
    POINT,
    String.raw`${BEGIN}/?\d{1,3}(?:\.\d{1,3}){3}(?:[:<]\d{1,6}>?)?(?:/\d{1,2})?(?![\w.]*\w)`,
  ],
  ["TIME", COLON, String.raw`${BEGIN}\d{1,4}:\d\d(?::\d\d)?(?:[.,]\d+)?(?![\w:])`],
  [
    "HOST",
    POINT,
    String.raw`${BEGIN}(?:${LABEL}\.){1,8}(?:${DOMAINS}|${LABEL}\.${COUNTRIES})(?::\d{1,5})?(?![\w.-]*[\w<])|${BEGIN}(?:${LABEL}\.){1,8}(?!${SOURCES}:)[A-Za-z]{2,}:\d{2,5}(?![\w.:])`,
  ],
  [
    "PATH",
    SLASH,
    String.raw`(?<![\w.\])>])~?/${SEGMENT}*[A-Za-z0-9_]${SEGMENT}*(?:/${SEGMENT}*)*(?:\?[^\s"'<>]*)?|\b[A-Za-z]:\\[^\s"'<>,;]+|(?<![\w./])\.{1,2}(?:/${SEGMENT}+)+|${BEGIN}${SEGMENT}+(?:/${SEGMENT}+){2,}/?|${BEGIN}${SEGMENT}+/${SEGMENT}+\.[a-z]{1,5}\b`,
  ],
  [
    "HEX",
    0,
    String.raw`\b0[xX][0-9a-fA-F]+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{5,}\b|\b(?=[A-F]*\d)(?=\d*[A-F])[0-9A-F]{6,}\b`,
  ],
  ["SIZE", 0, String.raw`${BEGIN}<?[-+]?${NUMBER} ?${SIZES}(?![\w/])`],
  ["TIME", 0, String.raw`${BEGIN}<?[-+]?${NUMBER} ?${TIMES}(?![\w/.]*\w)`],
  [
    "NUM",
    0,
    String.raw`${BEGIN}v?[-+~#]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?(?:\.?(?:rc|post|dev|a|b|el|fc)\d+)?(?:[+-](?:[a-z]+\d+\w*|\d[\w.]*))*%?(?!\w)`,
  ],
  // Within a word: "blk_-17", "core.2", "rank3".
  ["NUM", 0, String.raw`(?<=[_:=])-\d+(?:\.\d+)*|(?<=[_-])[A-Z]\d+(?!\w)|\d+(?:[.]\d+)*`],
];

/** For every set of signs the masks that are possible. */
const FORMS: (ReturnType<typeof maskOf> | undefined)[] = [];
/** Quoted words are names; quoted sentences are text, and what a colon follows is a key. */
const QUOTED = /(?<![\w])'[^'\s]{1,200}'(?! ?:)|(?<![\w])"[^"\s]{1,200}"(?! ?:)|`[^`\s]{1,200}`/g;
const QUOTE = /['"`]/;
const MASK = /<(?:[A-Z]+|\*)>/g;
const HAS_LETTER = /[A-Za-z]/;
/** Sizes and times that are said twice: "2048 bytes (2 KB)". */
const TWICE = /(<(?:SIZE|TIME|NUM)>) ?\((?:<(?:SIZE|TIME)>)\)/g;

/** What follows is of no use to a key. */
const MOST_CHARS = 1500;

/** The text with its variables masked: the normal form that keys are made of. */
export function maskText(text: string): string {
  let out = text.length > MOST_CHARS ? wholeWords(text) : text;
  if (QUOTE.test(out)) out = out.replace(QUOTED, maskQuoted);
  if (out.includes(" ()")) out = out.replaceAll(" ()", " (<*>)");
  out = maskRuns(out);
  return out.includes("<SIZE>)") || out.includes("<TIME>)") ? out.replace(TWICE, "$1") : out;
}

/**
 * Most words are plain, and the expression is dear: it is asked about runs of words that may hold a variable, with the
 * word behind them, which may be a unit, and the two before them, which may be a day and a month.
 */
function maskRuns(text: string): string {
  let out = "";
  let copied = 0;
  let runFrom = -1;
  let end = 0;
  let before = 0;
  let beforeThat = 0;
  let wasTelling = false;
  let signs = 0;
  for (let at = 0; at < text.length; at = end) {
    while (isSpace(text.charCodeAt(at))) at++;
    end = at;
    let hasDigit = false;
    let wordSigns = 0;
    for (; end < text.length; end++) {
      const c = text.charCodeAt(end);
      if (c <= 32) break;
      if (c >= 48 && c <= 57) hasDigit = true;
      else if (c < 93) wordSigns |= SIGNS[c]!;
    }
    const isTelling =
      hasDigit || (wordSigns & (SLASH | AT)) > 0 || (wordSigns > 0 && hasInnerPoint(text, at, end));
    if (isTelling) {
      signs |= wordSigns;
      if (runFrom < 0) runFrom = isDay(text, beforeThat) ? beforeThat : before;
    } else if (!wasTelling && runFrom >= 0) {
      out += text.slice(copied, runFrom) + masked(text.slice(runFrom, at), signs);
      copied = at;
      runFrom = -1;
      signs = 0;
    }
    wasTelling = isTelling;
    beforeThat = Math.max(before, copied);
    before = at;
  }
  if (runFrom < 0) return copied === 0 ? text : out + text.slice(copied);
  return out + text.slice(copied, runFrom) + masked(text.slice(runFrom), signs);
}

const SIGNS = new Uint8Array(93);
SIGNS[45] = DASH;
SIGNS[46] = POINT;
SIGNS[47] = SIGNS[92] = SLASH;
SIGNS[58] = COLON;
SIGNS[64] = AT;

/** A list that is cut within an item would have a last item of its own. */
function wholeWords(text: string): string {
  const end = text.lastIndexOf(" ", MOST_CHARS);
  return text.slice(0, end > MOST_CHARS / 2 ? end : MOST_CHARS);
}

function isSpace(code: number): boolean {
  return code <= 32;
}

function isDay(text: string, at: number): boolean {
  return DAYS.includes(text.slice(at, at + 3));
}

function maskQuoted(quoted: string): string {
  const mark = quoted[0]!;
  const inside = quoted.slice(1, -1);
  // A quoted number or sign stays what it is, and so does what is masked.
  return HAS_LETTER.test(inside.replaceAll(MASK, "")) ? `${mark}<STR>${mark}` : quoted;
}

/** Whether a word without digits has a point within, as names of hosts do. */
function hasInnerPoint(text: string, from: number, to: number): boolean {
  const at = text.indexOf(".", from);
  return at > from && at + 1 < to && text.charCodeAt(at + 1) !== 46;
}

function masked(run: string, signs: number): string {
  const { form, replace } = (FORMS[signs] ??= maskOf(signs));
  return run.replace(form, replace);
}

function maskOf(signs: number) {
  const kinds = KINDS.filter(([, needs]) =>
    (needs & ANY_OF) > 0 ? (needs & signs) > 0 : (needs & signs) === needs,
  );
  const names = kinds.map(([name]) => `<${name}>`);
  const form = new RegExp(kinds.map(([, , source]) => `(${source})`).join("|"), "g");
  /** Called with the match, its groups, its place and the text. */
  const replace = (match: string, ...groups: unknown[]): string => {
    for (let i = 0; i < names.length; i++) if (groups[i] !== undefined) return names[i]!;
    return match;
  };
  return { form, replace };
}
