/** A page of kernel timelines, for `faultline trace`: what the terminal shows, to send around. */
import { html } from "./escape.ts";
import { renderPage } from "./page.ts";

export function renderTracePage(title: string, isSlower: boolean, text: string): string {
  const body = html`<header class="verdict ${isSlower ? "warn" : "good"}">
      <h1>${title}</h1>
    </header>
    <main><pre>${text}</pre></main>
    <footer>Written by Faultline.</footer>`;
  return renderPage(title, body);
}
