// The prompt of `penstock-agent remap`: each input is a program that runs on one event, which keeps its changes; variables of earlier
// inputs stay available. The prompt asks for the rest of incomplete input, and completes words from the declarations of functions and from
// the current event.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { stdin, stdout } from 'node:process'
import { createInterface } from 'node:readline/promises'
import { type EventMetadata, noMetadata } from '../event/log.ts'
import { fieldNames, isObject, type Value, type ValueObject } from '../event/value.ts'
import { type Style, styled } from '../formats/pretty.ts'
import { printableWithColours } from '../printable.ts'
import { renderDiagnostics } from '../remap/diagnostics.ts'
import { isFailure } from '../remap/function.ts'
import { findFunction, functions } from '../remap/functions.ts'
import { kinds } from '../remap/kind.ts'
import { keywords, LexicalError, tokenize } from '../remap/lexer.ts'
import { type CompileOptions, compileProgram } from '../remap/program.ts'
import { valueText } from '../remap/text.ts'
import { closest } from '../schema/problems.ts'
import { sheetOf, takesColors } from '../terminal.ts'
import { pageText } from './page-text.ts'
import { referencePages } from './pages.ts'

export interface PromptOptions extends CompileOptions {
  /** Events to work on; the first is the current one. Without any, the event is an empty object. */
  readonly events: readonly ValueObject[]
  /** Whether to read and write the history file. */
  readonly history: boolean
}

const maxHistory = 1000
const commands = ['help', 'next', 'prev', 'exit', 'quit']
const help = `Each input is a program. It runs on the event \`.\`, which keeps its changes.
Variables are kept until you exit.
  help               this text
  help functions     the functions by category
  help FUNCTION      the page of a function; \`help E103\` shows an error code
  next, prev         the next or previous event of --input
  exit               exits, like Ctrl-D
Tab completes functions, their parameters and fields of the event. Incomplete
input continues on the next line; an empty line ends it, and Ctrl-C discards it.
`

/** The user's history file. */
export function historyFile(): string {
  const given = process.env['XDG_DATA_HOME']
  const data = given === undefined || given === '' ? join(homedir(), '.local', 'share') : given
  return join(data, 'penstock', 'remap_history')
}

export async function prompt({ events, history, ...options }: PromptOptions): Promise<void> {
  const session = new Session(events, options)
  const terminal = stdin.isTTY === true && stdout.isTTY === true
  const keeps = terminal && history
  const lines = createInterface({
    input: stdin,
    output: stdout,
    prompt: '$ ',
    historySize: maxHistory,
    history: keeps ? readHistory() : [],
    completer: (line: string) => session.complete(line),
  })
  const say = (answer: string) => {
    const shown = takesColors(stdout) ? colored(answer) : answer
    stdout.write(terminal ? printableWithColours(shown) : shown)
  }
  let text = ''
  let closed = false
  lines.on('close', () => {
    closed = true
  })
  const ask = (): void => {
    if (closed) return // lines read earlier are still pending
    lines.setPrompt(text === '' ? '$ ' : '… ')
    lines.prompt()
  }
  let latest: readonly string[] = []
  lines.on('history', (entries: string[]) => {
    latest = entries
  })
  lines.on('SIGINT', () => {
    if (text === '' && lines.line === '') {
      lines.close()
      return
    }
    text = ''
    stdout.write('\n')
    lines.write(null, { ctrl: true, name: 'u' })
    ask()
  })
  if (terminal) stdout.write('Type an expression to run it on the event `.`, `help` for help, `exit` to exit.\n')
  ask()
  for await (const line of lines) {
    if (text === '' && ['exit', 'quit'].includes(line.trim())) break
    const ended = text !== '' && line.trim() === ''
    text = text === '' ? line : `${text}\n${line}`
    if (ended || !isIncomplete(text)) {
      say(session.answer(text.trim()))
      text = ''
    }
    ask()
  }
  // The end of the input also ends incomplete input.
  if (text !== '') say(session.answer(text.trim()))
  lines.close()
  if (keeps && latest.length > 0) writeHistory(latest)
}

/** Diagnostics with coloured headings and marks, and the messages of failed runs. */
function colored(answer: string): string {
  const styles: Readonly<Record<string, Style>> = { error: 'red', warning: 'yellow' }
  let style: Style = 'red'
  return answer
    .split('\n')
    .map((line) => {
      const [head, severity = ''] = /^(error|warning)(?:\[\w+\])?(?=:)/.exec(line) ?? []
      style = styles[severity] ?? style
      if (head !== undefined) return styled(head, style, true) + line.slice(head.length)
      return line.replace(/(?<=│.*)[\^]+/, (marks) => styled(marks, style, true))
    })
    .join('\n')
}

function readHistory(): string[] {
  try {
    return readFileSync(historyFile(), 'utf8').split('\n').filter(Boolean).slice(-maxHistory).reverse()
  } catch {
    return [] // no history yet
  }
}

/** @param entries newest first; entries that begin with a space are not saved */
function writeHistory(entries: readonly string[]): void {
  const file = historyFile()
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const kept = entries.filter((entry) => !entry.startsWith(' '))
    writeFileSync(file, `${kept.toReversed().join('\n')}\n`, { mode: 0o600 })
  } catch (error) {
    process.stderr.write(`Cannot save the history to ${file}: ${(error as Error).message}\n`)
  }
}

/** Whether the input is incomplete: a bracket or literal is open, or the compiler reached the end too early. */
function isIncomplete(text: string): boolean {
  let depth = 0
  try {
    for (const { type, text: token } of tokenize(text)) {
      if (type !== 'punctuation') continue
      if (token === '(' || token === '[' || token === '{') depth++
      else if (token === ')' || token === ']' || token === '}') depth--
    }
  } catch (error) {
    if (error instanceof LexicalError) return error.problem.code === 207 || error.problem.code === 208
    throw error
  }
  if (depth !== 0) return depth > 0
  const compiled = compileProgram(text)
  return !compiled.ok && compiled.diagnostics.some(({ code }) => code === 204)
}

class Session {
  readonly #events: readonly ValueObject[]
  readonly #options: CompileOptions
  #at = 0
  #root: Value
  #metadata: EventMetadata = noMetadata
  readonly #variables = new Map<string, Value>()
  /** The known kind of the event after the programs so far. */
  #kind = kinds.any

  constructor(events: readonly ValueObject[], options: CompileOptions) {
    this.#events = events
    this.#options = options
    this.#root = events[0] ?? {}
  }

  /** The result of an input, as text. */
  answer(text: string): string {
    if (text === '') return ''
    const [command, topic] = text.split(/\s+/)
    if (command === 'help') return topic === undefined ? help : helpOn(topic)
    if (text === 'next' || text === 'prev') return this.#step(text === 'next' ? 1 : -1)
    const compiled = compileProgram(text, {
      ...this.#options,
      keepResult: true,
      eventKind: this.#kind,
      variables: this.#variables,
    })
    if (!compiled.ok) return compiled.rendered
    const { program } = compiled
    // At a prompt, an unused result is normal: the user wants to see it.
    const warnings = renderDiagnostics(
      text,
      compiled.warnings.filter(({ code }) => code !== 900),
    )
    const result = program.run(this.#root as ValueObject, this.#metadata, false)
    if (isFailure(result)) return `${warnings}error: ${result.message}\n`
    this.#root = program.frame.root
    this.#metadata = program.metadataAfter(this.#metadata)
    this.#kind = program.eventKind
    return `${warnings}${valueText(result)}\n`
  }

  #step(by: number): string {
    const event = this.#events[this.#at + by]
    if (event === undefined) return `There is no ${by > 0 ? 'next' : 'previous'} event.\n`
    this.#at += by
    this.#root = event
    this.#metadata = noMetadata
    this.#kind = kinds.any
    return `${valueText(event)}\n`
  }

  /** The possible completions of the last word of the line, and that word. */
  complete(line: string): [string[], string] {
    const topic = /^\s*help\s+(\w*)$/.exec(line)
    if (topic !== null) {
      const names = ['functions', ...functions.map(({ name }) => name)]
      return [names.filter((name) => name.startsWith(topic[1] as string)), topic[1] as string]
    }
    const path = pathAtEnd.exec(line)
    if (path !== null) return [this.#fields(path), path[0]]
    const word = /[@\w]*$/.exec(line)?.[0] ?? ''
    const before = line.slice(0, line.length - word.length)
    const found = parametersAt(before).map((name) => `${name}: `)
    if (word !== '') {
      found.push(...functions.map(({ name }) => `${name}(`), ...keywords, ...this.#variables.keys())
      if (before.trim() === '') found.push(...commands)
    }
    return [found.filter((name) => name.startsWith(word)).sort(), word]
  }

  #fields([, root = '.', parents = '', start = '']: RegExpExecArray): string[] {
    let value: Value | undefined =
      root === '%' ? this.#metadata.value : root === '.' ? this.#root : this.#variables.get(root.slice(0, -1))
    for (const [, bare, quoted] of parents.matchAll(/(?:([@\w]+)|"((?:[^"\\]|\\.)*)")\./g)) {
      value = isObject(value) ? value[bare ?? (quoted as string).replace(/\\(.)/g, '$1')] : undefined
    }
    if (!isObject(value)) return []
    return fieldNames(value)
      .map((name) => (/^[@_A-Za-z][@\w]*$/.test(name) ? name : `"${name.replace(/["\\]/g, '\\$&')}"`))
      .filter((name) => name.startsWith(start))
      .sort()
      .map((name) => `${root}${parents}${name}`)
  }
}

/** An incomplete path: its root (the event, its metadata or a variable), the segments in between, and its last name. */
const pathAtEnd =
  /((?<![@\w"\])}])[.%]|(?<![@\w"\])}.%])[A-Za-z_]\w*\.)((?:[@\w]+\.|"(?:[^"\\]|\\.)*"\.)*)([@\w]*|"[^"]*)$/

/** Parameters of the call at the end of the text, if a parameter name may follow there. */
function parametersAt(text: string): readonly string[] {
  const calls: (string | undefined)[] = []
  let last = ''
  try {
    let name: string | undefined
    for (const { type, text: token } of tokenize(text)) {
      if (type === 'end') break
      last = token
      if (type === 'call') name = token
      else if (type !== 'bang') {
        if (type === 'punctuation') {
          if (token === '(' || token === '[' || token === '{') calls.push(token === '(' ? name : undefined)
          else if (token === ')' || token === ']' || token === '}') calls.pop()
        }
        name = undefined
      }
    }
  } catch (error) {
    if (error instanceof LexicalError) return [] // inside a text
    throw error
  }
  const call = calls.at(-1)
  if (call === undefined || (last !== '(' && last !== ',')) return []
  return findFunction(call)?.parameters.map(({ name }) => name) ?? []
}

function helpOn(topic: string): string {
  if (topic === 'functions') {
    const groups = Object.entries(Object.groupBy(functions, ({ category }) => category)).sort()
    return `${groups.map(([category, each = []]) => `${category}: ${each.map(({ name }) => name).join(', ')}`).join('\n')}\n`
  }
  const pages = referencePages()
  const page =
    pages.find(({ section, names }) => section === 'Functions' && names.includes(topic)) ??
    pages.find(({ names }) => names.includes(topic))
  if (page !== undefined) return pageText(page.text, sheetOf(process.stdout))
  const near = closest(
    topic,
    functions.map(({ name }) => name),
  )
  return `Nothing is named "${topic}".${near === undefined ? '' : ` Did you mean "${near}"?`}\n`
}
