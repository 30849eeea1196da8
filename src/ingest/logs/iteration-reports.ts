/**
 * Lines that report an iteration, and where in them its number stands. Formats: Megatron-LM and NeMo ("iteration 9/ 99 |"),
 * DeepSpeed ("step=10, skipped=", "global_step=10, Running"), torchtitan and DeepSpeed's pipeline ("step: 12  loss:"),
 * plain loops, tqdm's bars, the dictionaries of Hugging Face's trainer. Asked once for every form.
 */

/** A better kind of report replaces what a stream had before. */
interface ReportForm {
  readonly worth: 1 | 2 | 3;
  readonly pattern: RegExp;
}

export const REPORT_FORMS: readonly ReportForm[] = [
  { worth: 3, pattern: /\biteration:?\s{0,12}(\d{1,12})\s{0,3}\/\s{0,12}(\d{1,12})/di },
  { worth: 3, pattern: /\bsteps?: {1,12}(\d{1,12}) {1,4}loss:/d },
  { worth: 3, pattern: /\bstep=(\d{1,12}), (?:skipped|Running)/d },
  { worth: 3, pattern: /\d\/(\d{1,12}), (?:Running|SamplesPerSec)/d },
  {
    worth: 3,
    pattern: /\bstep:? {0,12}(\d{1,12})\s?(?:\/\s?\d{1,12})?\s?[|,:\] ].{0,200}\bloss['"]?[ :=]/di,
  },
  {
    worth: 3,
    pattern: /\biter(?:ation)?:? {0,12}(\d{1,12})[:,]? {1,4}(?:\| )?(?:\w+ )?loss[ :=]/di,
  },
  { worth: 3, pattern: /\bglobal_step['"]?\s?[=:]\s?(\d{1,12})/d },
  {
    worth: 3,
    pattern: /\bepoch:?\s?\[?\d{1,7}\b.{0,40}?\b(?:step|iter(?:ation)?|batch):?\s?\[?(\d{1,12})/di,
  },
  {
    worth: 2,
    pattern: /(?:^|\|)\s{0,4}(\d{1,12})\/(\d{1,12}) \[\d{1,3}:\d\d[^\]]{0,200}(?:it\/s|s\/it)/d,
  },
  { worth: 1, pattern: /^\{'(?:train_)?loss': .{0,400}'epoch': '?(\d{1,9}(?:\.\d{1,9})?)/d },
];

/** Iterations of an evaluation, and bars that count something else. */
const OTHER =
  /\bTesting: iteration|\b[Vv]alidat(?:e|ion|ing)\b[^|]{0,40}?\b(?:step|iteration)\b|\bval(?:idation)?[ _]loss\b|\b(?:[Ll]oading|[Ff]etching|[Dd]ownload\w*|[Mm]ap|[Tt]okeniz\w*|[Ee]val\w*|[Gg]enerat\w*|[Ss]aving|[Ss]anity [Cc]heck\w*|[Cc]ompil\w*|[Ff]ilter|[Pp]repar\w*|[Gg]rouping)\b[^|]{0,60}\d%\|/;

/** What every report has; most lines have none of it. */
const HINT = /step|iter|epoch|\d\/\d/i;

/** Index into REPORT_FORMS, -1 for none; the numbers' places in `place`. */
export function findReport(text: string, place: ReportPlace): number {
  if (!HINT.test(text) || OTHER.test(text)) return -1;
  for (let form = 0; form < REPORT_FORMS.length; form++) {
    const m = REPORT_FORMS[form]!.pattern.exec(text);
    if (!m) continue;
    place.numberAt = m.indices![1]![0];
    place.totalAt = REPORT_FORMS[form]!.worth === 2 ? m.indices![2]![0] : -1;
    return form;
  }
  return -1;
}

export interface ReportPlace {
  numberAt: number;
  /** Of how many: tells a bar of the training from that of an evaluation. */
  totalAt: number;
}
