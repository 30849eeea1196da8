/** What programs say when they live with an error, or when it is over. */
const GOES_ON =
  /\b(?:ignor(?:ed|ing)|will (?:be )?(?:retried|retry|try again)|retrying|retry in|trying again|continues|continuing|skip(?:ped|ping)|restarted|recovered|(?:attempt|retry) \d+(?: of|\/)|non-?fatal|harmless|fall(?:ing|s) back|fallback|using default|not critical|deprecated)\b/i;
const OVER =
  /\b(?:link (?:is )?up|port active|recovered|reconnected|restored|opened again|back online|back to normal|succeeded after|on retry|is healthy again)\b/i;

export function saysContinues(text: string): boolean {
  return GOES_ON.test(text);
}

export function saysOver(text: string): boolean {
  return OVER.test(text);
}
