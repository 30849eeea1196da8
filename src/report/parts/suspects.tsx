/** Who is suspected, why, and on what grounds; and who only waits. */
import type { ComponentChild, VNode } from "preact";
import { count, cutText, ranges, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import { causeWords } from "./cause-words.ts";

/** Beside the first, which stands alone. */
const MOST_OPEN = 3;
/** Of the first one's score: less likely ones are folded. */
const LIKELY = 0.2;
const MOST_CARDS = 60;
const MOST_WHY = 1_200;
const MOST_NAME = 120;

const TYPES: Readonly<Record<string, string>> = { gpu: "GPU", nic: "NIC" };

interface RankPlace {
  readonly gpu: number | null;
  readonly pid: number | null;
}

interface SuspectsProps {
  readonly verdict: Pick<Verdict, "suspects" | "victims">;
  /** What is known of a rank besides. */
  readonly placeOf?: (rank: Rank) => RankPlace | null | undefined;
  /** Called when the pointer or the keyboard is on a suspect, so that its ranks can be marked elsewhere; null: on none. */
  readonly onPoint?: ((ranks: readonly Rank[] | null) => void) | undefined;
}

export function Suspects({ verdict, ...rest }: SuspectsProps): VNode {
  const { suspects, victims } = verdict;
  const [first, ...others] = suspects;
  const likely = others.filter(({ score }) => score >= LIKELY * (first?.score ?? 0));
  const open = likely.slice(0, MOST_OPEN);
  const folded = others.filter((one) => !open.includes(one)).slice(0, MOST_CARDS);
  const unseen = others.length - open.length - folded.length;
  return (
    <>
      {!first && <p class="fl-p">Nobody.</p>}
      {first && <Card suspect={first} isFirst {...rest} />}
      {open.length > 0 && (
        <div class="fl-cards">
          {open.map((suspect) => (
            <Card suspect={suspect} {...rest} />
          ))}
        </div>
      )}
      {folded.length > 0 && (
        <details class="fl-details">
          <summary>
            {count(
              folded.length,
              open.length < likely.length ? "more suspect" : "less likely suspect",
            )}
          </summary>
          <div class="fl-cards">
            {folded.map((suspect) => (
              <Card suspect={suspect} {...rest} />
            ))}
          </div>
        </details>
      )}
      {unseen > 0 && <p class="fl-note">{count(unseen, "more suspect")} in the verdict's JSON.</p>}
      <Victims victims={victims} />
    </>
  );
}

function Victims({ victims }: { readonly victims: readonly Rank[] }): VNode | null {
  if (victims.length === 0) return null;
  return (
    <p class="fl-p">
      <b>Only waiting, not at fault:</b> {rankWords(victims)}.
    </p>
  );
}

/** "Rank 17", "Link between ranks 3 and 5", "Machine node003 (ranks 0–7)", "Link node003 – leaf2". */
export function suspectName({ type, ranks, machine, link, name }: Suspect): string {
  const isOne = ranks.length === 1;
  if (type === "link" && ranks.length === 2) return `Link between ${rankWords(ranks)}`;
  if (type === "gpu" && isOne) return `GPU of rank ${ranks[0]}`;
  if (type !== "rank" && ranks.length > 0) {
    const of = name ?? (type === "machine" ? machine : null);
    const what = capital(TYPES[type] ?? type);
    if (of !== null) return cutText(`${what} ${of} (${rankWords(ranks)})`, MOST_NAME);
    if (type === "nic") return `NIC of ${rankWords(ranks)}`;
  }
  if (ranks.length > 0) return `${ranks.length === 1 ? "Rank" : "Ranks"} ${ranges(ranks)}`;
  if (name !== null) return cutText(`${capital(TYPES[type] ?? type)} ${name}`, MOST_NAME);
  if (machine !== null) return cutText(`Machine ${machine}`, MOST_NAME);
  if (link !== null) return cutText(`Link ${link[0]} – ${link[1]}`, MOST_NAME);
  return capital(TYPES[type] ?? type);
}

function Card({
  suspect,
  isFirst = false,
  placeOf,
  onPoint,
}: Omit<SuspectsProps, "verdict"> & {
  readonly suspect: Suspect;
  readonly isFirst?: boolean;
}): VNode {
  const { type, ranks, machine, link, cause, why } = suspect;
  const place = ranks.length === 1 ? placeOf?.(ranks[0]!) : null;
  const details: ComponentChild[] = [];
  if (machine !== null)
    details.push(
      <>
        machine <b>{cutText(machine, MOST_NAME)}</b>
      </>,
    );
  if (place && place.gpu !== null) details.push(`GPU ${place.gpu}`);
  if (place && place.pid !== null) details.push(`pid ${place.pid}`);
  const title = suspectName(suspect);
  // Ranks that the title names, it names better.
  if (link !== null && !link.every((end) => /^rank:\d+$/.test(end)))
    details.push(`between ${cutText(link[0], MOST_NAME)} and ${cutText(link[1], MOST_NAME)}`);
  if (type !== "rank" && title.startsWith("Rank"))
    details.push(`suspected: the ${TYPES[type] ?? type}`);
  const point = onPoint && {
    onMouseEnter: () => onPoint(ranks),
    onMouseLeave: () => onPoint(null),
    onFocusIn: () => onPoint(ranks),
    onFocusOut: () => onPoint(null),
  };
  return (
    <article class={isFirst ? "fl-card fl-first" : "fl-card"} {...point}>
      <h3>{title}</h3>
      <p class="fl-line">
        <b>{causeWords(cause)}</b>
        <span class="fl-cause">{cause}</span>
      </p>
      {details.length > 0 && (
        <p class="fl-p">{details.map((detail, i) => (i === 0 ? detail : [" · ", detail]))}</p>
      )}
      {why !== "" && <p class="fl-p">{cutText(why, MOST_WHY)}</p>}
    </article>
  );
}

function capital(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1, MOST_NAME)}`;
}
