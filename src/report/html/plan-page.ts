/** A plan as a page: the lines of the terminal, to be shared. */
import { html } from "./escape.ts";
import { renderPage } from "./page.ts";

export function renderPlanPage(lines: readonly string[]): string {
  const body = html`<main>
    <h1>Plan</h1>
    ${lines.map((line) => (line.startsWith("  ") ? html`<p class="note">${line.trim()}</p>` : html`<p>${line}</p>`))}
  </main>`;
  return renderPage("plan", body);
}
