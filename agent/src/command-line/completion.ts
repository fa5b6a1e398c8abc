// Completion scripts for bash, zsh and fish, derived from the commands, their flags and their arguments.

export interface CompletionCommand {
  readonly name: string
  readonly help: string
  readonly flags: readonly CompletionFlag[]
  /** Possible arguments; if empty, completion offers files. */
  readonly words: readonly string[]
}

export interface CompletionFlag {
  readonly name: string
  readonly short?: string | undefined
  readonly help: string
  /** Whether the flag takes a value. */
  readonly takesValue: boolean
  /** The possible values, if there are few; otherwise completion offers files. */
  readonly values?: readonly string[] | undefined
}

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** @param root the flags without a subcommand */
export function completionScript(
  shell: Shell,
  program: string,
  root: readonly CompletionFlag[],
  commands: readonly CompletionCommand[],
): string {
  if (shell === 'bash') return bash(program, root, commands)
  if (shell === 'zsh') return zsh(program, root, commands)
  return fish(program, root, commands)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function flagWords(flags: readonly CompletionFlag[]): string {
  return flags.map((flag) => `--${flag.name}`).join(' ')
}

function bash(program: string, root: readonly CompletionFlag[], commands: readonly CompletionCommand[]): string {
  const name = `_${program.replaceAll('-', '_')}`
  const valueCases = (flags: readonly CompletionFlag[], indent: string) =>
    flags
      .filter((flag) => flag.takesValue)
      .map((flag) => {
        const pattern = [`--${flag.name}`, ...(flag.short === undefined ? [] : [`-${flag.short}`])].join('|')
        const offer = flag.values === undefined ? '-f' : `-W ${quoted(flag.values.join(' '))}`
        return `${indent}${pattern}) COMPREPLY=($(compgen ${offer} -- "$word")); return ;;`
      })
      .join('\n')
  const branch = (command: { flags: readonly CompletionFlag[]; words: readonly string[] }, indent: string) => {
    const values = valueCases(command.flags, `${indent}  `)
    const words = command.words.length === 0 ? '' : ` ${command.words.join(' ')}`
    return [
      ...(values === '' ? [] : [`${indent}case "$previous" in`, values, `${indent}esac`]),
      `${indent}COMPREPLY=($(compgen -W ${quoted(flagWords(command.flags) + words)} -- "$word"))`,
      ...(command.words.length === 0 ? [`${indent}[[ $word == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))`] : []),
    ].join('\n')
  }
  const cases = commands.map((command) => `    ${command.name})\n${branch(command, '      ')}\n      ;;`).join('\n')
  return `# Completion of ${program} for bash.
${name}() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command=''
  [[ $COMP_CWORD -gt 1 ]] && command=\${COMP_WORDS[1]}
  COMPREPLY=()
  case "$command" in
${cases}
    *)
${branch({ flags: root, words: commands.map((command) => command.name) }, '      ')}
      ;;
  esac
}
complete -o filenames -F ${name} ${program}
`
}

function zsh(program: string, root: readonly CompletionFlag[], commands: readonly CompletionCommand[]): string {
  const name = `_${program.replaceAll('-', '_')}`
  const described = (text: string) => text.replaceAll(/[[\]:\\]/g, '\\$&')
  const specs = (flags: readonly CompletionFlag[]) =>
    flags.flatMap((flag) => {
      const value = flag.takesValue
        ? `:value:${flag.values === undefined ? '_files' : `(${flag.values.join(' ')})`}`
        : ''
      const names = [
        `--${flag.name}${flag.takesValue ? '=' : ''}`,
        ...(flag.short === undefined ? [] : [`-${flag.short}`]),
      ]
      return names.map((each) => `        ${quoted(`*${each}[${described(flag.help)}]${value}`)}`)
    })
  const branch = (command: CompletionCommand) => {
    const rest = command.words.length === 0 ? '*:file:_files' : `*:name:(${command.words.join(' ')})`
    return `    ${command.name})
      _arguments \\
${[...specs(command.flags), `        ${quoted(rest)}`].join(' \\\n')}
      ;;`
  }
  const names = commands.map((command) => `    ${quoted(`${command.name}:${described(command.help)}`)}`).join('\n')
  return `#compdef ${program}
# Completion of ${program} for zsh.
${name}() {
  local -a commands=(
${names}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    _arguments \\
${specs(root).join(' \\\n')}
    return
  fi
  local command=\${words[2]}
  shift words
  (( CURRENT-- ))
  case "$command" in
${commands.map(branch).join('\n')}
    *)
      _arguments \\
${specs(root).join(' \\\n')}
      ;;
  esac
}
if [[ "$funcstack[1]" == ${quoted(name)} ]]; then ${name} "$@"; else compdef ${name} ${program}; fi
`
}

function fish(program: string, root: readonly CompletionFlag[], commands: readonly CompletionCommand[]): string {
  const lines = [`# Completion of ${program} for fish.`]
  const flagLines = (condition: string, flags: readonly CompletionFlag[]) => {
    for (const flag of flags) {
      const parts = [`complete -c ${program}`, `-n ${quoted(condition)}`, `-l ${flag.name}`]
      if (flag.short?.length === 1) parts.push(`-s ${flag.short}`)
      if (flag.takesValue) parts.push(flag.values === undefined ? '-r' : `-x -a ${quoted(flag.values.join(' '))}`)
      parts.push(`-d ${quoted(flag.help)}`)
      lines.push(parts.join(' '))
    }
  }
  flagLines('__fish_use_subcommand', root)
  for (const command of commands) {
    lines.push(`complete -c ${program} -n '__fish_use_subcommand' -a ${command.name} -d ${quoted(command.help)}`)
  }
  for (const command of commands) {
    const condition = `__fish_seen_subcommand_from ${command.name}`
    flagLines(condition, command.flags)
    if (command.words.length > 0) {
      lines.push(`complete -c ${program} -n ${quoted(condition)} -f -a ${quoted(command.words.join(' '))}`)
    }
  }
  return `${lines.join('\n')}\n`
}
