/** L4 §5.4: keeps the pattern of a confirmed cause, to recognise the next failure of the kind at once. */
import { UserError } from "../base/errors.ts";
import type { Cause } from "../model/cause.ts";
import { CATEGORIES, CAUSE_OF, type Category, type FaultRecord } from "../model/fault-record.ts";
import type { LogStore } from "../model/log-store.ts";
import { checked } from "./load.ts";
import { FaultMatchers } from "./matcher.ts";
import { shippedRecords } from "./shipped.ts";

/** What people say of a line. */
export interface SiteRecordAbout {
  /** `site.` and the title where absent. */
  readonly id?: string;
  readonly category: string;
  /** Where the category alone does not say it. */
  readonly cause?: Cause;
  readonly title: string;
  readonly action: string;
  readonly owner?: string;
}

const MASK = /<[A-Z*]+>/;
const LEAST_LITERAL = 4;
const LEAST_LETTERS = 14;
/** What a record's text may have (library/load.ts). */
const MOST_TEXT = 200;
const MOST_PARTS = 6;
const MOST_EXAMPLE = 2000;

/** The template's constant parts become the matcher's literals. */
export function siteRecord(line: string, template: string, about: SiteRecordAbout): FaultRecord {
  const { title, category, cause, action } = about;
  const literals = template
    .split(MASK)
    .map((part) => part.trim())
    .filter((part) => part.length >= LEAST_LITERAL && line.includes(part));
  const letters = literals.join("").replace(/[^\p{L}]/gu, "").length;
  if (letters < LEAST_LETTERS)
    throw new UserError(
      "the line has too little constant text to recognise it again",
      "choose another line, or write a record by hand (faultline logs import)",
      2,
    );
  return checked(
    {
      id: about.id ?? `site.${slug(title)}`,
      title,
      layer: "framework",
      match: {
        all: literals
          .map((part) => part.slice(0, MOST_TEXT))
          .toSorted((a, b) => b.length - a.length)
          .slice(0, MOST_PARTS),
        // In their order, not far from each other.
        regex: literals.slice(0, MOST_PARTS).map(escaped).join(".{0,120}?"),
      },
      meaning: `Confirmed at this site: ${title}.`,
      component: "as the title says",
      category,
      ...(cause === undefined ? {} : { cause }),
      role: "root",
      severity: "error",
      owner: about.owner ?? ownerOf(category),
      action,
      falseFriends: [],
      certainty: 0.8,
      source: "confirmed by people of this site",
      example: line.slice(0, MOST_EXAMPLE),
    },
    "the pattern",
  );
}

function ownerOf(category: string): string {
  if (category === "hardware.network") return "network";
  if (category === "hardware.storage") return "storage";
  return category.split(".")[0]!;
}

function escaped(text: string): string {
  return text.slice(0, 60).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function slug(title: string): string {
  const words = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
  if (words !== "") return words;
  // Titles in other scripts differ by their characters' numbers.
  return Array.from(title, (one) => one.codePointAt(0)!.toString(16))
    .join("-")
    .slice(0, 60);
}

/** A site's own record must not take the place of one that comes with Faultline unnoticed. */
export function refuseShipped(records: readonly FaultRecord[]): void {
  const shipped = new Set(shippedRecords().map(({ id }) => id));
  const taken = records.filter(({ id }) => shipped.has(id)).map(({ id }) => id);
  if (taken.length > 0)
    throw new UserError(
      `Faultline already has a record with the id ${taken.slice(0, 3).join(", ")}`,
      "give yours another id (site.…); if ours is wrong, run faultline logs dispute",
      2,
    );
}

/** A pattern that healthy jobs match would accuse them, wherever it comes from; what is said to be harmless may match. */
export function refuseNormal(
  records: readonly FaultRecord[],
  { normal }: Pick<LogStore, "normal">,
): void {
  const matchers = new FaultMatchers(records.filter(({ category }) => category !== null));
  for (const event of Object.keys(normal))
    for (const { record } of matchers.match(event))
      throw new UserError(
        `healthy jobs log what ${record.id} matches: ${event.slice(0, 100)}`,
        "choose another line, or take the record out of the file",
        2,
      );
}

/** What L4 would call a cause. */
export function categoryOf(cause: Cause): Category {
  if (cause.startsWith("gpu-")) return "hardware.accelerator";
  if (cause.startsWith("network-")) return "hardware.network";
  if (/^(?:cpu-|host-|process-)/.test(cause)) return "hardware.node";
  if (/^(?:scheduler|telemetry)$/.test(cause)) return "platform";
  return CATEGORIES.find((category) => CAUSE_OF[category] === cause) ?? "user.program";
}
