/** The frame of every page: one file that asks nothing of the network, and lets nothing else run in it. */
import { createHash } from "node:crypto";
import { html, Markup } from "./escape.ts";
import { STYLE } from "./style.ts";

/**
 * All the page's JavaScript: the copy buttons, on a narrow screen the culprit in the middle of the
 * graph's window, and what is folded in a section unfolds when a link leads there. Without it everything can still be read.
 */
const SCRIPT = `
document.documentElement.classList.add("js");
const culprit = document.querySelector(".wait-graph .ranks.culprit");
if (culprit) {
  const box = culprit.closest(".scroll");
  box.scrollLeft = culprit.getBBox().x + culprit.getBBox().width / 2 - box.clientWidth / 2;
}
const unfold = () => {
  const fold = document.querySelector("section:target > .fold, section:has(:target) > .fold");
  if (fold) fold.open = true;
};
addEventListener("hashchange", unfold);
unfold();
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
  }
});
`;

/** Hashes rather than a nonce: the same input gives the same page, and nothing else may run in it. */
const POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(STYLE)}'`,
  `script-src '${hashOf(SCRIPT)}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Outside the template: the hashes cover every character, and a formatter moves white space. */
const STYLE_ELEMENT = new Markup(`<style>${STYLE}</style>`);
const SCRIPT_ELEMENT = new Markup(`<script>${SCRIPT}</script>`);

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text, "utf8").digest("base64")}`;
}

export function renderPage(title: string, body: Markup): string {
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${POLICY}" />
        <meta name="referrer" content="no-referrer" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${STYLE_ELEMENT}
      </head>
      <body>
        ${body} ${SCRIPT_ELEMENT}
      </body>
    </html> `;
  return page.text;
}
