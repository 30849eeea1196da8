/** What several pages have alike: sections with the list of them, tables that scroll sideways, keys of plots. */
import { html, type Markup, type Part } from "./escape.ts";

export interface Section {
  readonly id: string;
  readonly name: string;
  /** Above it, where it is not the name. */
  readonly title?: string;
  readonly body: Markup;
}

export function sectionLinks(sections: readonly Section[]): Markup {
  return html`<nav aria-label="Sections">
    ${sections.map(({ id, name }) => html`<a href="#${id}">${name}</a> `)}
  </nav>`;
}

export function renderSection({ id, name, title = name, body }: Section): Markup {
  return html`<section id="${id}">
    <h2>${title}</h2>
    ${body}
  </section> `;
}

export function scrollingTable(
  kind: string,
  caption: string,
  head: readonly string[],
  rows: readonly (readonly Part[])[],
): Markup {
  return html`<div
    class="scroll"
    tabindex="0"
    role="group"
    aria-label="${caption}, scrolls sideways"
  >
    <table class="${kind}-table">
      <caption class="hidden">
        ${caption}
      </caption>
      <thead>
        <tr>
          ${head.map((name) => html`<th scope="col">${name}</th> `)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (cells) =>
            html`<tr>
              ${cells.map((cell) => html`<td>${cell}</td> `)}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}

/** `kind`: classes of the plot whose drawings are shown; `size`: width and height. */
export function legend(
  kind: string,
  [width, height]: readonly [number, number],
  keys: readonly (readonly [words: string, drawing: Markup])[],
  last: Part = null,
): Markup {
  return html`<ul class="legend">
    ${keys.map(
      ([words, drawing]) =>
        html`<li>
          <svg class="${kind}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
            ${drawing}
          </svg>
          ${words}
        </li> `,
    )}
    ${last}
  </ul>`;
}
