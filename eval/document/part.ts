/**
 * Single figures out of what an evaluation printed. Whatever is not there is an error that says what was looked for:
 * a figure that silently goes missing, or stays what it was, would be worse than no document.
 */
export class Part {
  readonly #where: string;
  readonly #lines: readonly string[];

  constructor(where: string, text: string) {
    this.#where = where;
    this.#lines = text.split("\n");
  }

  /** From the first heading that begins with these words to the next of its level or above. */
  under(heading: string): Part {
    const at = this.#lines.findIndex((line) => headingOf(line)?.text.startsWith(heading) === true);
    if (at < 0) return this.#fail(`no heading that begins with "${heading}"`);
    const { level } = headingOf(this.#lines[at]!)!;
    const length = this.#lines
      .slice(at + 1)
      .findIndex((line) => (headingOf(line)?.level ?? Infinity) <= level);
    const end = length < 0 ? this.#lines.length : at + 1 + length;
    return new Part(`${this.#where}, "${heading}"`, this.#lines.slice(at, end).join("\n"));
  }

  /** Of the first table that has both: the row by its first cell, the column by its head. Emphasis does not count. */
  cell(row: string, column: string): string {
    return this.cells(row, column)[0]!;
  }

  /** The same of every table that has both, at least one. */
  cells(row: string, column: string): string[] {
    const found = this.#rows(column).flatMap(({ first, cell }) => (first === row ? [cell] : []));
    if (found.length === 0) this.#fail(`no row "${row}" in a table with "${column}"`);
    if (found.includes("")) this.#fail(`nothing in column "${column}" of row "${row}"`);
    return found;
  }

  /** All of a column, in every table that has it. */
  column(column: string): string[] {
    return this.#rows(column).map(({ cell }) => cell);
  }

  #rows(column: string): { readonly first: string; readonly cell: string }[] {
    const found: { first: string; cell: string }[] = [];
    let head: string[] | null = null;
    for (const [i, line] of this.#lines.entries()) {
      if (!line.startsWith("|")) head = null;
      else if (head === null) {
        if (isRuler(this.#lines[i + 1])) head = cellsOf(line);
      } else if (!isRuler(line)) {
        const cells = cellsOf(line);
        const at = head.indexOf(column);
        if (at < 0) continue;
        const cell = cells[at] ?? "";
        found.push({ first: cells[0]!, cell });
      }
    }
    return found.length > 0 ? found : this.#fail(`no table with "${column}"`);
  }

  /** The pattern's first group, or all that it matches. */
  match(pattern: RegExp): string {
    const found = pattern.exec(this.#lines.join("\n"));
    return found ? (found[1] ?? found[0]) : this.#fail(`nothing like ${pattern}`);
  }

  /** All that a pattern's first group matches, at least one. */
  matches(pattern: RegExp): string[] {
    const found = [...this.#lines.join("\n").matchAll(pattern)].map((one) => one[1] ?? one[0]);
    return found.length > 0 ? found : this.#fail(`nothing like ${pattern}`);
  }

  #fail(what: string): never {
    throw new Error(`${this.#where}: ${what}`);
  }
}

export interface Heading {
  readonly level: number;
  readonly text: string;
}

export function headingOf(line: string): Heading | null {
  const found = /^(#{1,6}) (.*)$/.exec(line);
  return found ? { level: found[1]!.length, text: found[2]!.trim() } : null;
}

function isRuler(line: string | undefined): boolean {
  return line !== undefined && /^\|(?:\s*:?-+:?\s*\|)+\s*$/.test(line);
}

/** A bar in a cell is written with a backslash. */
function cellsOf(line: string): string[] {
  return line
    .replace(/^\|/, "")
    .replace(/\|\s*$/, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.replaceAll("**", "").trim());
}
