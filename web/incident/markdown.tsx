/** The few signs of Markdown that people use in a comment, as elements: nothing of it ever becomes HTML by itself. */
import type { ComponentChildren, VNode } from "preact";

const SIGNS = /(`[^`\n]+`|\*\*[^*\n]+\*\*|https?:\/\/[^\s<>"'`)\]]+)/;

export function Markdown({ text }: { readonly text: string }): VNode {
  return (
    <>
      {blocksOf(text).map((lines, i) =>
        ITEM.test(lines[0]!) ? (
          <ul key={i}>
            {lines.map((line, k) => (
              <li key={k}>{inline(line.slice(2))}</li>
            ))}
          </ul>
        ) : (
          <p key={i} class="comment-text">
            {inline(lines.join("\n"))}
          </p>
        ),
      )}
    </>
  );
}

const ITEM = /^[-*] /;

/** Lines of one list or one paragraph; a list may follow a paragraph at once. */
export function blocksOf(text: string): readonly (readonly string[])[] {
  const blocks: string[][] = [];
  let isNew = true;
  for (const line of text.split("\n")) {
    const before = blocks.at(-1)?.[0];
    const isOther = before === undefined || ITEM.test(before) !== ITEM.test(line);
    if (line.trim() === "") isNew = true;
    else {
      if (isNew || isOther) blocks.push([line]);
      else blocks.at(-1)!.push(line);
      isNew = false;
    }
  }
  return blocks;
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
