/** The few signs of Markdown that people use in a comment, as elements: nothing of it ever becomes HTML by itself. */
import type { ComponentChildren, VNode } from "preact";

const SIGNS = /(`[^`\n]+`|\*\*[^*\n]+\*\*|https?:\/\/[^\s<>"'`)\]]+)/;

export function Markdown({ text }: { readonly text: string }): VNode {
  return (
    <>
      {text.split(/\n{2,}/).map((part, i) => {
        const lines = part.split("\n");
        return lines.every((line) => /^[-*] /.test(line)) ? (
          <ul key={i}>
            {lines.map((line, k) => (
              <li key={k}>{inline(line.slice(2))}</li>
            ))}
          </ul>
        ) : (
          <p key={i} class="comment-text">
            {inline(part)}
          </p>
        );
      })}
    </>
  );
}

function inline(text: string): ComponentChildren[] {
  return text.split(SIGNS).map((part, i) => {
    if (i % 2 === 0) return part;
    if (part.startsWith("`")) return <code key={i}>{part.slice(1, -1)}</code>;
    if (part.startsWith("**")) return <strong key={i}>{part.slice(2, -2)}</strong>;
    return (
      <a key={i} href={part} rel="noreferrer noopener" target="_blank">
        {part}
      </a>
    );
  });
}
