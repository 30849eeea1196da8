import { html, type Markup } from "./escape.ts";

/** A number between 0 and 1 as a bar. SVG, because the page's policy forbids style attributes. */
export function bar(value: number, label: string): Markup {
  const share = Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : 0;
  return html`<svg
    class="fl-bar"
    role="img"
    aria-label="${label}"
    width="100"
    height="8"
    viewBox="0 0 100 8"
    preserveAspectRatio="none"
  >
    <rect class="fl-track" width="100" height="8" rx="2" />
    <rect class="fl-fill" width="${Math.round(share * 1000) / 10}" height="8" rx="2" />
  </svg>`;
}
