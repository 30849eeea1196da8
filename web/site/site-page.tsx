/** What the site has: mutes and maintenance, the week in figures, how right the answers were. */
import type { VNode } from "preact";
import { links } from "../shell/route.ts";
import { Digest } from "./digest.tsx";
import { Mutes } from "./mutes.tsx";

export function SitePage(): VNode {
  return (
    <div class="stack site">
      <h1 tabIndex={-1}>Site</h1>
      <Mutes />
      <Digest />
      <p>
        <a href={links.right}>How right were the answers?</a>
      </p>
    </div>
  );
}
