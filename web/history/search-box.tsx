/** Words to look for in all incidents. */
import type { VNode } from "preact";
import { links } from "../shell/route.ts";

const MOST_WORDS = 200;

export function SearchBox({ words = "" }: { readonly words?: string }): VNode {
  return (
    <form
      class="search-box"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem("words") as HTMLInputElement;
        location.hash = links.history(field.value.trim());
      }}
    >
      <label>
        <span class="visually-hidden">Search incidents, jobs and machines</span>
        <input
          type="search"
          name="words"
          defaultValue={words}
          key={words}
          maxLength={MOST_WORDS}
          placeholder="job, machine, rank, cause …"
        />
      </label>
      <button type="submit">Search</button>
    </form>
  );
}
