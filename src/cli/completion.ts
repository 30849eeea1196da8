/**
 * Completion scripts for bash, zsh and fish, made of the commands themselves. They hold all words, so that a press of the
 * tab key starts no process.
 */
import type { Command, Option } from "commander";

export type Shell = "bash" | "zsh" | "fish";

interface Known {
  /** Words that lead to it: "", "agent", "agent run". */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly about: string }[];
  readonly options: readonly { readonly name: string; readonly about: string }[];
  /** Option → what may follow. */
  readonly choices: ReadonlyMap<string, readonly string[]>;
}

export function completionScript(program: Command, shell: Shell): string {
  const known: Known[] = [];
  const visit = (command: Command, words: readonly string[]): void => {
    const shown = command.commands.filter((one) => !isHidden(one));
    const options = command.options.filter(({ hidden, long }) => !hidden && long !== undefined);
    // `faultline agent --server` is `faultline agent run --server`.
    const standIn = words.length === 1 ? shown.find((one) => isDefault(command, one)) : undefined;
    const all: Option[] = [...options, ...(standIn?.options ?? [])];
    known.push({
      path: words.join(" "),
      commands: shown.map((one) => ({ name: one.name(), about: aboutText(one.description()) })),
      options: [...all, HELP].map(({ long, description }) => ({
        name: long!,
        about: aboutText(description),
      })),
      choices: new Map(
        all.flatMap(({ long, argChoices }) => (argChoices ? [[long!, argChoices] as const] : [])),
      ),
    });
    for (const below of shown) visit(below, [...words, below.name()]);
  };
  visit(program, []);
  return { bash, zsh, fish }[shell](known);
}

const HELP = { long: "--help", description: "display help" };

function isHidden(command: Command): boolean {
  return (command as unknown as { readonly _hidden?: boolean })._hidden === true;
}

function isDefault(parent: Command, command: Command): boolean {
  const { _defaultCommandName: name } = parent as unknown as {
    readonly _defaultCommandName?: string | null;
  };
  return name === command.name();
}

/** One short line without quotes, whatever shell it is for. */
function aboutText(description: string): string {
  const line = description.replace(/[`'"\\$:[\]]/g, "").replace(/\s+/g, " ");
  return line.length <= 70 ? line : `${line.slice(0, 69)}…`;
}

const paths = (known: readonly Known[]): string[] =>
  known.map(({ path }) => path).filter((path) => path !== "");

function bash(known: readonly Known[]): string {
  const words = known.map(
    ({ path, commands, options }) =>
      `    "${path}") words="${[...commands, ...options].map(({ name }) => name).join(" ")}"${commands.length > 0 ? " files=" : ""} ;;`,
  );
  const choices = known.flatMap((one) =>
    [...one.choices].map(
      ([option, values]) => `    "${one.path} ${option}") choices="${values.join(" ")}" ;;`,
    ),
  );
  return `# faultline: put this into ~/.bashrc: source <(faultline completion bash)
_faultline() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path="" words="" choices="" files=yes word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
${paths(known)
  .map((path) => `    "${path}") path="${path}" ;;`)
  .join("\n")}
    esac
  done
  case "$path $prev" in
${choices.join("\n")}
  esac
  case "$path" in
${words.join("\n")}
  esac
  if [[ -n $choices ]]; then words=$choices; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ -n $files && $cur != -* && -z $choices ]]; then
    local IFS=$'\\n'
    COMPREPLY+=($(compgen -f -- "$cur"))
  fi
}
complete -o filenames -F _faultline faultline
`;
}

function zsh(known: readonly Known[]): string {
  const list = (items: Known["options"]): string =>
    items.map(({ name, about }) => `'${name}:${about}'`).join(" ");
  const cases = known.map(
    ({ path, commands, options }) =>
      `    "${path}") commands=(${list(commands)}); options=(${list(options)}) ;;`,
  );
  const choices = known.flatMap((one) =>
    [...one.choices].map(
      ([option, values]) =>
        `    "${one.path} ${option}") compadd -- ${values.join(" ")}; return ;;`,
    ),
  );
  return `#compdef faultline
# faultline: put this into ~/.zshrc behind compinit: source <(faultline completion zsh)
_faultline() {
  local path_words="" word
  local -a commands options
  for word in \${words[2,CURRENT-1]}; do
    case "\${path_words:+$path_words }$word" in
${paths(known)
  .map((path) => `    "${path}") path_words="${path}" ;;`)
  .join("\n")}
    esac
  done
  case "$path_words \${words[CURRENT-1]}" in
${choices.join("\n")}
  esac
  case "$path_words" in
${cases.join("\n")}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    _describe option options
  else
    if (( $#commands )); then _describe command commands; else _files; fi
  fi
}
compdef _faultline faultline
`;
}

function fish(known: readonly Known[]): string {
  const lines = known.flatMap(({ path, commands, options, choices }) => {
    const here = `-n '__faultline_at "${path}"'`;
    return [
      // A group takes a command, not a file.
      ...(commands.length > 0 ? [`complete -c faultline ${here} -f`] : []),
      ...commands.map(
        ({ name, about }) => `complete -c faultline ${here} -a ${name} -d '${about}'`,
      ),
      ...options.map(({ name, about }) => {
        const values = choices.get(name);
        const more = values ? ` -x -a '${values.join(" ")}'` : "";
        return `complete -c faultline ${here} -l ${name.slice(2)} -d '${about}'${more}`;
      }),
    ];
  });
  return `# faultline: faultline completion fish > ~/.config/fish/completions/faultline.fish
function __faultline_at
  set -l path ""
  for word in (commandline -opc)[2..]
    switch (string trim "$path $word")
${paths(known)
  .map((path) => `      case "${path}"\n        set path "${path}"`)
  .join("\n")}
    end
  end
  test "$path" = "$argv[1]"
end
${lines.join("\n")}
`;
}
