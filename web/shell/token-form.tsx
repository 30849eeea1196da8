/** Asks for a token. It is kept until the tab is closed. */
import type { VNode } from "preact";
import { useToken } from "../live/api.ts";

export function TokenForm({ scope }: { readonly scope: "read" | "act" }): VNode {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement).get("token");
    if (typeof given === "string" && given.trim() !== "") useToken(given.trim());
  };
  return (
    <form class="token-form" onSubmit={submit}>
      <label>
        Token with the scope <code>{scope}</code>{" "}
        <input
          name="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          maxLength={1024}
          required
        />
      </label>
      <button type="submit">Use it</button>
    </form>
  );
}
