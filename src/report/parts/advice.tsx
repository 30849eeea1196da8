/** A sentence of advice with its commands as code that can be copied. */
import type { VNode } from "preact";
import { splitCommands } from "../html/commands.ts";

interface AdviceProps {
  readonly text: string;
  /** Stands in for "<pid>" where it is known. */
  readonly pid?: number | null;
  /** The report's own script finds the buttons by data-copy; the page hands this in. */
  readonly onCopy?: ((command: string) => void) | undefined;
}

export function Advice({ text, pid = null, onCopy }: AdviceProps): VNode {
  return (
    <>
      {splitCommands(text).map(({ text: piece, isCommand }) => {
        if (!isCommand) return piece;
        const command = pid === null ? piece : piece.replace("<pid>", String(pid));
        return <Command command={command} onCopy={onCopy} />;
      })}
    </>
  );
}

/** A command that can be copied. */
export function Command({
  command,
  onCopy,
}: {
  readonly command: string;
  readonly onCopy?: ((command: string) => void) | undefined;
}): VNode {
  return (
    <span class={onCopy ? "fl-command fl-live" : "fl-command"}>
      <code>{command}</code>
      <button
        type="button"
        data-copy
        aria-label={`Copy ${command}`}
        onClick={onCopy && (() => onCopy(command))}
      >
        Copy
      </button>
    </span>
  );
}
