/** The frame of every page: one file that asks nothing of the network, and lets nothing else run in it. */
import { createHash } from "node:crypto";
import { html, Markup } from "./escape.ts";
import { SCRIPT } from "./script.ts";
import { STYLE } from "./style.ts";

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
