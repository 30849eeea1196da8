/** Text out of the page: into the clipboard, or into a file. */

/** False where the browser does not let it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** The clipboard is only there on loopback and over TLS; a selected text can be copied anywhere. */
function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  let isDone: boolean;
  try {
    isDone = document.execCommand("copy");
  } catch {
    isDone = false;
  }
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return isDone;
}

export function download(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Names of strangers become names of files here. */
export function fileName(name: string): string {
  return (
    name
      .replace(/[^\w.-]+/g, "_")
      .replace(/^[._]+/, "")
      .slice(0, 120) || "faultline"
  );
}
