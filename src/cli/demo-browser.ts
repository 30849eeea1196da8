/** Opens the page where somebody can see it. It is a courtesy: whatever goes wrong, the address is on the terminal. */
import { spawn } from "node:child_process";

export function mayOpenBrowser(
  env: Readonly<Record<string, string | undefined>>,
  platform: string,
  isTerminal: boolean,
): boolean {
  if (!isTerminal || env["CI"] || env["SSH_CONNECTION"]) return false;
  return platform === "darwin" || Boolean(env["DISPLAY"]) || Boolean(env["WAYLAND_DISPLAY"]);
}

export function openBrowser(url: string, platform: string): void {
  try {
    const child = spawn(platform === "darwin" ? "open" : "xdg-open", [url], {
      stdio: "ignore",
      detached: true,
    });
    child.on("error", () => undefined);
    child.unref();
  } catch {
    // The address is printed.
  }
}
