/**
 * What is to be known of a line, from its form where that is known and from its text where not. One line at a time; its
 * fields hold until the next one is read.
 *
 * A reader lives as long as one task. What is known of a form comes from its first line, whose numbers may differ in
 * width from those of later ones; a reader that went from task to task would know other first lines whenever another
 * thread was quicker, and the same files would give another digest.
 */
import { decimal, isBlank, wholeNumber, KnownHeads } from "./known-heads.ts";
import { coarseHash } from "./coarse-form.ts";
import * as forms from "./form-table.ts";
import { FormTable } from "./form-table.ts";
import { findReport, type ReportPlace } from "./iteration-reports.ts";
import { EXCEPTION, isPartKind, lineKind, PLAIN } from "./line-kind.ts";
import { readWith, type Header } from "./prefix-header.ts";
import { newPrefix, readPrefix } from "./prefix.ts";
import { scanForm, scanned } from "./scan-bytes.ts";
import { LEVELS, MOST_TEXT, ShapeTable } from "./shape-table.ts";
import { STAMP_KINDS } from "./stamps.ts";
import { NO_RANK } from "./stream-table.ts";
import { hasFailureWord } from "./failure-words.ts";

/** A progress bar's end with a message right behind it; the bar's front may be gone. */
const GLUED = /(?:it\/s|s\/it)[^\][]{0,300}\](?=[[{A-Za-z])/;
/** Expressions see no more of a line than this. */
const MOST_SEEN = 4000;
/** Every prefix has one of these near its beginning: what has none, plain text, is spared the search. */
const HAS_HEAD = /^.{0,80}[\d[:<(|=]|^[A-Z]{4,8}\b/;
const NO_PREFIX = newPrefix();
/** No line's prefix is longer. */
const MOST_HEAD = 600;
/** Of so many lines, when more than this share are new, what comes is text or a dump: its lines are put together. */
const WINDOW = 4096;
const MANY_NEW = 0.6;
const MOST_FRONT = 200;
/** One in so many of its lines is looked at all the same. */
const LOOKED_AT = 32;

export class FormReader {
  readonly shapes = new ShapeTable();
  readonly #forms = new FormTable();
  #lumps = 0;
  #lines = 0;
  #fresh = 0;
  #isDump = false;
  readonly #heads = new KnownHeads();
  readonly #isTelling: (text: string) => boolean;
  readonly #isNoted: (text: string) => boolean;
  readonly #mostForms: number;
  readonly #prefix = newPrefix();
  readonly #report: ReportPlace = { numberAt: -1, totalAt: -1 };
  readonly #decoder = new TextDecoder();
  /** Places of this line, where they were read from its text. */
  readonly #places = new Int32Array(forms.PLACES);
  #form = -1;
  #header: Header | null = null;
  /** Lines alike mean another thing under another header. */
  #headerKey = 0;
  #start = 0;
  #hasHigh = false;
  /** Lines that were given the shape of others, because there were too many forms. */
  lumped = 0;

  shape = -1;
  kind = 0;
  stamp = 0;
  flags = 0;
  report = forms.NO_REPORT;
  /** Whether the readers that follow single ranks want to see the line. */
  noted = false;
  rank = NO_RANK;
  idA = 0;
  idB = 0;

  /** `isNoted`: of a line whatever its numbers; nobody asks by default. */
  constructor(
    isTelling: (text: string) => boolean,
    mostForms: number,
    isNoted: (text: string) => boolean = () => false,
  ) {
    this.#isTelling = isTelling;
    this.#isNoted = isNoted;
    this.#mostForms = mostForms;
  }

  /** Of the file whose lines come next. */
  set header(header: Header | null) {
    this.#header = header;
    this.#headerKey = header ? hashOf(JSON.stringify(header)) : 0;
  }

  /** Takes the line that was scanned last. */
  read(buf: Buffer, from: number, to: number): void {
    const a = scanned.a ^ this.#headerKey;
    const { b } = scanned;
    this.#start = from;
    this.#hasHigh = scanned.hasHigh;
    const table = this.#forms;
    const form = table.find(a, b);
    if (++this.#lines === WINDOW) this.#judge();
    if (form < 0) {
      if (++this.#fresh % LOOKED_AT !== 0 && this.#isDump && this.#guess(buf, from, to)) return;
      if (table.size >= this.#mostForms) this.#lump(buf, from, to);
      else this.#register(buf, from, to, a, b);
      return;
    }
    this.#form = form;
    this.shape = table.shape[form]!;
    this.kind = table.kind[form]!;
    this.stamp = table.stamp[form]!;
    this.flags = table.flags[form]!;
    this.report = table.report[form]!;
    this.noted = table.isNoted[form] === 1;
    if ((this.flags & forms.UNSTEADY) === 0) return;
    const text = buf.toString("latin1", from, to);
    this.#readHead(text);
    if (this.report !== forms.NO_REPORT) this.#placeReport(text);
  }

  place(which: number): number {
    return this.#form < 0
      ? this.#places[which]!
      : this.#forms.place(this.#form, which, this.#start);
  }

  /** Sets `rank`, and the hash of who wrote the line. */
  identify(buf: Buffer, fileA: number, fileB: number): void {
    const { flags } = this;
    this.idA = fileA;
    this.idB = fileB;
    if ((flags & forms.HAS_HOST) !== 0)
      this.#mixBytes(buf, this.place(forms.HOST_FROM), this.place(forms.HOST_TO), 0x201);
    this.rank = NO_RANK;
    if ((flags & forms.HAS_RANK) !== 0) {
      this.rank = wholeNumber(buf, this.place(forms.RANK_FROM), this.place(forms.RANK_TO));
      this.#mixBytes(buf, 0, 0, 0x1000 + this.rank);
    }
    if ((flags & forms.HAS_WRITER) !== 0)
      this.#mixBytes(buf, this.place(forms.WRITER_FROM), this.place(forms.WRITER_TO), 0x202);
  }

  #mixBytes(buf: Buffer, from: number, to: number, mark: number): void {
    let a = Math.imul(this.idA ^ mark, 0x01000193);
    let b = Math.imul(((this.idB << 5) | (this.idB >>> 27)) ^ mark, 0x9e3779b1);
    for (let i = from; i < to; i++) {
      const c = buf[i]!;
      a = Math.imul(a ^ c, 0x01000193);
      b = Math.imul(((b << 5) | (b >>> 27)) ^ c, 0x9e3779b1);
    }
    this.idA = a;
    this.idB = b;
  }

  host(buf: Buffer): string | null {
    if ((this.flags & forms.HAS_HOST) === 0) return null;
    return buf.toString("latin1", this.place(forms.HOST_FROM), this.place(forms.HOST_TO));
  }

  writer(buf: Buffer): string {
    if ((this.flags & forms.HAS_WRITER) === 0) return "";
    return buf.toString("latin1", this.place(forms.WRITER_FROM), this.place(forms.WRITER_TO));
  }

  /** The message, at most so many bytes of it. */
  content(buf: Buffer, to: number, most: number): string {
    let from = this.place(forms.CONTENT);
    while (from < to && (buf[from] === 32 || buf[from] === 9)) from++;
    return this.#text(buf, from, to, most);
  }

  /** The line as it stands. */
  whole(buf: Buffer, to: number): string {
    return this.#text(buf, this.#start, to, to);
  }

  #text(buf: Buffer, from: number, to: number, most: number): string {
    const end = Math.min(to, from + most);
    if (!this.#hasHigh) return buf.toString("latin1", from, end);
    const text = this.#decoder.decode(buf.subarray(from, end));
    // A character that was cut in two.
    return end < to ? text.replace(/\ufffd+$/, "") : text;
  }

  /** The iteration's number. */
  number(buf: Buffer, to: number): number {
    return decimal(buf, this.place(forms.NUMBER), to);
  }

  total(buf: Buffer, to: number): number {
    return (this.flags & forms.HAS_TOTAL) === 0 ? 0 : decimal(buf, this.place(forms.TOTAL), to);
  }

  #register(buf: Buffer, from: number, to: number, a: number, b: number): void {
    const text = buf.toString("latin1", from, to);
    this.#readHead(text);
    this.#setHead(text);
    const { runs } = scanned;
    const table = this.#forms;
    const form = table.add(a, b);
    for (let which = 0; which < forms.PLACES; which++) {
      if (!table.anchor(form, which, this.#places[which]!, text, from, runs))
        this.flags |= forms.UNSTEADY;
    }
    this.#readContent(buf, to, null);
    this.noted = this.#isNoted(text);
    table.isNoted[form] = this.noted ? 1 : 0;
    table.shape[form] = this.shape;
    table.kind[form] = this.kind;
    table.stamp[form] = this.stamp;
    table.flags[form] = this.flags;
    table.report[form] = this.report;
    this.#learn(form, buf, this.#places[forms.CONTENT]!);
  }

  /** Where a report of an iteration may follow, every line is to be read. */
  #learn(form: number, buf: Buffer, content: number): void {
    const table = this.#forms;
    if (!this.#isDump || table.shape[form]! < 0 || table.report[form] !== forms.NO_REPORT) return;
    if ((table.flags[form]! & forms.UNSTEADY) !== 0) return;
    this.#heads.add(form, buf, this.#start, content);
  }

  #judge(): void {
    this.#isDump = this.#fresh > MANY_NEW * WINDOW;
    this.#lines = this.#fresh = 0;
  }

  /** Takes a line for more of the same text, where its head is known and its words tell nothing. */
  #guess(buf: Buffer, from: number, to: number): boolean {
    const form = this.#heads.find(buf, from, to);
    if (form < 0) return false;
    const table = this.#forms;
    this.#form = form;
    const text = this.content(buf, to, MOST_TEXT);
    const { shapes } = this;
    const level = shapes.level[table.shape[form]!]!;
    // Whatever is no plain text shows it at its beginning.
    const front = text.length > MOST_FRONT ? text.slice(0, MOST_FRONT) : text;
    if (lineKind(front) !== PLAIN || this.#tells(text, level)) return false;
    const b = level << 8;
    let shape = shapes.find(0, b);
    if (shape < 0) {
      shape = shapes.add(0, b, text);
      shapes.level[shape] = level;
    }
    this.shape = shape;
    this.kind = PLAIN;
    this.stamp = table.stamp[form]!;
    this.flags = table.flags[form]! & ~forms.TELLING;
    this.report = forms.NO_REPORT;
    this.noted = this.#isNoted(text);
    this.lumped++;
    return true;
  }

  /** There are too many forms: the line goes with those that begin alike. */
  #lump(buf: Buffer, from: number, to: number): void {
    const text = buf.toString("latin1", from, to);
    this.#readHead(text);
    this.#setHead(text);
    this.#readContent(buf, to, coarseHash(buf, this.#places[forms.CONTENT]!, to));
    this.noted = this.#isNoted(text);
    this.lumped++;
  }

  /** Finds the head's places in the line's text. */
  #readHead(text: string): void {
    const p = this.#prefix;
    const head = text.length > MOST_HEAD ? text.slice(0, MOST_HEAD) : text;
    if (this.#header) readWith(this.#header, head, p);
    else if (HAS_HEAD.test(head)) readPrefix(head, p);
    else Object.assign(p, NO_PREFIX);
    let shift = 0;
    if (p.stampKind === "" && p.level === null && p.contentStart === 0) {
      const glued = text.length < MOST_SEEN ? GLUED.exec(text) : null;
      if (glued) {
        shift = glued.index + glued[0].length;
        readPrefix(text.slice(shift, shift + MOST_HEAD), p);
      }
    }
    // Blanks before the message belong to it here: they tell code from text.
    let content = shift + p.contentStart;
    while (content > shift && isBlank(text.charCodeAt(content - 1))) content--;
    const start = this.#start + shift;
    const places = this.#places;
    places[forms.CONTENT] = this.#start + content;
    places[forms.STAMP] = shifted(p.stampFrom, start);
    places[forms.HOST_FROM] = shifted(p.hostFrom, start);
    places[forms.HOST_TO] = shifted(p.hostTo, start);
    places[forms.RANK_FROM] = shifted(p.rankFrom, start);
    places[forms.RANK_TO] = shifted(p.rankTo, start);
    places[forms.WRITER_FROM] = shifted(p.writerFrom, start);
    places[forms.WRITER_TO] = shifted(p.writerTo, start);
    places[forms.NUMBER] = places[forms.TOTAL] = -1;
    this.#form = -1;
  }

  /** What the head says, once its places are known. */
  #setHead(text: string): void {
    const p = this.#prefix;
    let flags = 0;
    if (p.hostFrom >= 0) flags |= forms.HAS_HOST;
    if (p.rankFrom >= 0) flags |= forms.HAS_RANK;
    if (p.writerFrom >= 0) flags |= forms.HAS_WRITER;
    if (flags !== 0) flags |= forms.NAMED;
    if (p.level !== null) flags |= forms.LEVELLED;
    this.stamp = p.stampFrom < 0 ? 0 : STAMP_KINDS.indexOf(p.stampKind);
    const report = this.#placeReport(text);
    this.report = report < 0 ? forms.NO_REPORT : report;
    if (this.#places[forms.TOTAL]! >= 0) flags |= forms.HAS_TOTAL;
    this.flags = flags;
  }

  #placeReport(text: string): number {
    const found = findReport(text.slice(0, MOST_SEEN), this.#report);
    if (found < 0) return found;
    this.#places[forms.NUMBER] = this.#start + this.#report.numberAt;
    const { totalAt } = this.#report;
    this.#places[forms.TOTAL] = totalAt < 0 ? -1 : this.#start + totalAt;
    return found;
  }

  /** Kind and shape, from the message. `coarse`: the hash of a line that gets no form of its own, else null. */
  #readContent(buf: Buffer, to: number, coarse: number | null): void {
    let from = this.#places[forms.CONTENT]!;
    while (from < to && isBlank(buf[from]!)) from++;
    this.shape = -1;
    this.kind = 0;
    if (from >= to) return;
    const text = this.content(buf, to, MOST_TEXT);
    this.kind = lineKind(text);
    const level = LEVELS.indexOf(this.#prefix.level);
    const isTelling = !isPartKind(this.kind) && this.#tells(text, level);
    if (isTelling) this.flags |= forms.TELLING;
    if (coarse === null) scanForm(buf, from, to);
    let a = coarse ?? scanned.a;
    const b = (coarse === null ? scanned.b : isTelling ? 1 : 0) ^ (level << 8);
    let shape = this.shapes.find(a, b);
    if (shape < 0 && coarse !== null && ++this.#lumps > this.#mostForms) {
      // Not even the first words repeat: all the rest is one.
      shape = this.shapes.find((a = 0), b);
    }
    if (shape < 0) {
      const { shapes } = this;
      shape = shapes.add(a, b, text);
      shapes.coarse[shape] = coarse ?? coarseHash(buf, from, to);
      shapes.level[shape] = level;
      shapes.isTelling[shape] = isTelling ? 1 : 0;
    } else if (isTelling && this.shapes.isTelling[shape] === 0) {
      this.flags &= ~forms.TELLING;
    }
    this.shape = shape;
  }

  #tells(text: string, level: number): boolean {
    // A level of trouble tells as much as a word of it.
    if (this.kind === EXCEPTION || (level > 0 && level <= LEVELS.indexOf("warning"))) return true;
    return hasFailureWord(text) || this.#isTelling(text);
  }
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5 | 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}

function shifted(place: number, by: number): number {
  return place < 0 ? -1 : place + by;
}
