/** Asks for a token. It is kept until the tab is closed. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { isToken, type TokenScope, useToken } from "../live/token.ts";
import { SignInLink } from "./who.tsx";

export function TokenForm({ scope }: { readonly scope: TokenScope }): VNode {
  const [refusal, refuse] = useState("");
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement).get("token");
    const token = typeof given === "string" ? given.trim() : "";
    if (isToken(token)) {
      refuse("");
      useToken(token, scope);
    } else if (token === "") refuse("The token is empty.");
    else refuse("A token has only ASCII letters, digits and signs, and no spaces.");
  };
  return (
    <form class="token-form" onSubmit={submit}>
      <SignInLink />
      <label>
        Token with the scope <code>{scope}</code>{" "}
        <input
          name="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          maxLength={1024}
          required
          aria-invalid={refusal !== ""}
        />
      </label>
      <button type="submit">Use it</button>
      <span class="tone-bad" role="alert">
        {refusal}
      </span>
    </form>
  );
}
