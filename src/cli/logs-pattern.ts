/** L4 §5.4: keeps the pattern of a confirmed cause, to recognise the next failure of the kind at once. */
import { UserError } from "../base/errors.ts";
import { checked } from "../library/load.ts";
import type { FaultRecord } from "../model/fault-record.ts";

export interface PatternFlags {
  readonly id?: string;
  readonly category?: string;
  readonly title?: string;
  readonly action?: string;
  readonly owner?: string;
  /** Which of the report's indicating lines, from 1. */
  readonly line?: number;
}

const MASK = /<[A-Z*]+>/;
const LEAST_LITERAL = 4;
const LEAST_LETTERS = 14;
/** What a record's text may have (library/load.ts). */
const MOST_TEXT = 200;
const MOST_PARTS = 6;

/** The template's constant parts become the matcher's literals. */
export function recordOfReport(text: string, file: string, flags: PatternFlags): FaultRecord {
  let report: {
    schema?: string;
    indicating?: { text?: string; template?: string }[];
  };
  try {
    report = JSON.parse(text) as typeof report;
  } catch {
    throw new UserError(`${file} is not JSON`, "give the verdict.json of faultline logs --out", 3);
  }
  if (report.schema !== "faultline.logs/1")
    throw new UserError(`${file} is not a report of faultline logs`, "give its verdict.json", 3);
  const place = (flags.line ?? 1) - 1;
  const line = report.indicating?.[place];
  if (!line?.text || !line.template)
    throw new UserError(`${file} has no indicating line ${place + 1}`, "choose one with --line", 2);
  if (flags.category === undefined || flags.title === undefined || flags.action === undefined)
    throw new UserError(
      "a new signature needs --category, --title and --action",
      "for example --category hardware.network --title 'leaf 3 flaps' --action 'drain it'",
      2,
    );
  const literals = line.template
    .split(MASK)
    .map((part) => part.trim())
    .filter((part) => part.length >= LEAST_LITERAL && line.text!.includes(part));
  const letters = literals.join("").replace(/[^\p{L}]/gu, "").length;
  if (letters < LEAST_LETTERS)
    throw new UserError(
      `line ${place + 1} has too little constant text to recognise it again`,
      "choose another line with --line, or write a record by hand (faultline logs import)",
      2,
    );
  return checked(
    {
      id: flags.id ?? `site.${slug(flags.title)}`,
      title: flags.title,
      layer: "framework",
      match: {
        all: literals
          .map((part) => part.slice(0, MOST_TEXT))
          .toSorted((a, b) => b.length - a.length)
          .slice(0, MOST_PARTS),
        // In their order, not far from each other.
        regex: literals.slice(0, MOST_PARTS).map(escaped).join(".{0,120}?"),
      },
      meaning: `Confirmed at this site: ${flags.title}.`,
      component: "as the title says",
      category: flags.category,
      role: "root",
      severity: "error",
      owner: flags.owner ?? ownerOf(flags.category),
      action: flags.action,
      falseFriends: [],
      certainty: 0.8,
      source: "confirmed by people of this site",
      example: line.text,
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
