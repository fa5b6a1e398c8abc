// Multiline rules. Fluent Bit and the plugin `detect_exceptions` of Fluentd use state machines; a source has a pattern for the first line
// and one for further lines. A machine becomes these two patterns: its start rules, and the union of its other rules.

import { multilineProblems } from '@penstock/agent/config'
import type { MultilineMode } from '@penstock/agent/schema'
import type { Context } from './plugin.ts'
import { entriesOf, lastValue, listOf, type Place, type Section } from './sections.ts'
import { isPodLog } from './tags.ts'

/** Parsers for lines of the container runtime, which the source parses itself. */
export const runtimeParsers: ReadonlySet<string> = new Set(['cri', 'docker', 'containerd'])

/** The option `multiline` of a `file` source and of an `orchestrator_logs` source. */
export interface Joined {
  readonly file: Readonly<Record<string, unknown>>
  readonly pods: Readonly<Record<string, unknown>>
}

export interface Machine {
  /** Patterns of first lines. */
  readonly starts: readonly string[]
  /** Patterns of further lines. */
  readonly others: readonly string[]
  /** Whether the machine accepts the same further lines in all states. */
  readonly isExact: boolean
  readonly timeoutMs: number
  /** Alternative to `others`: the pattern of the first line that is not a further line. */
  readonly end?: string
}

const machine = (starts: readonly string[], others: readonly string[], isExact = false): Machine => ({
  starts,
  others,
  isExact,
  timeoutMs: 2000,
})

const java = machine(
  ['(?:Exception|Error|Throwable|V8 errors stack trace)(?:[:\\r\\n]|$)'],
  [
    '^[\\t ]*nested exception is:',
    '^\\r?$',
    '^[\\t ]+(?:eval )?at ',
    '^[\\t ]*(?:Caused by|Suppressed):',
    '^[\\t ]*\\.\\.\\. \\d+ (?:more|common frames omitted)',
    '^[\\t ]*--- End of ',
  ],
)
const python = machine(
  ['^Traceback \\(most recent call last\\):'],
  ['^[\\t ]', '^(?:[^\\s.():]+\\.)*[^\\s.():]*(?:Error|Exception|Warning|Interrupt|Exit|Iteration)(?::|$)'],
)
const go = machine(
  ['\\bpanic: '],
  [
    '^$',
    '^\\[signal ',
    '^goroutine \\d+ \\[[^\\]]+\\]:',
    '^(?:[^\\s.:]+\\.)*[^\\s.():]+\\(',
    '^created by ',
    '^[\\t ]',
  ],
)
const php = machine(
  ['PHP (?:Notice|Parse error|Fatal error|Warning):', "exception '[^']+' with message '"],
  ['^Stack trace:', '^#\\d', '^\\s+thrown in '],
)
const rails = machine(['Error \\(.*\\):$'], ['^  $', '^[\\t ]+.*?\\.rb:\\d+:in '])
const dart = machine(
  ['^Unhandled exception:$'],
  [
    '^#\\d+\\s',
    '^<asynchronous suspension>',
    '^(?:Instance of|Exception|Bad state|Invalid argument|RangeError|Assertion failed|FormatException|NoSuchMethodError)',
    '^(?:Receiver|Tried calling|Found):',
  ],
)

/** The built-in machines of Fluent Bit. */
const presets: Readonly<Record<string, Machine>> = {
  java,
  python,
  go,
  ruby: machine(['^.+:\\d+:in\\s'], ['^\\s+from\\s.*:\\d+:in\\s'], true),
}

/** The machines of `detect_exceptions` by language. */
export const languages: Readonly<Record<string, Machine>> = {
  java,
  javascript: java,
  js: java,
  csharp: java,
  python,
  py: python,
  php,
  go,
  ruby: rails,
  rb: rails,
  dart,
}

/** The multiline parsers of an input or of the filter `multiline`. */
export function multilineOf(section: Section, context: Context): Joined | undefined {
  const machines: Machine[] = []
  const names = listOf(section, 'multiline.parser')
  const runtime = names.find((name) => runtimeParsers.has(name))
  for (const name of names) {
    if (runtimeParsers.has(name)) continue
    const definition = context.multilineParsers.get(name)
    if (definition !== undefined && !readsLine(definition, section)) {
      const reason = 'it parses lines before it joins them, and a source joins lines as read'
      const nearest =
        'Set `multiline` of the source, with patterns for the complete line, and parse in a remap transform.'
      context.gap(definition, `multiline_parser ${name}: parser`, reason, nearest)
      continue
    }
    const known = Object.hasOwn(presets, name) ? presets[name] : undefined
    const found = definition === undefined ? known : machineOf(definition)
    if (found === undefined) {
      context.gap(
        section,
        `multiline.parser ${name}`,
        '`convert` does not know rules with this name',
        'Set `multiline.custom` of the source: start, condition and mode.',
      )
      continue
    }
    if (definition !== undefined && problemOf(found) !== undefined) {
      context.gap(
        definition,
        `multiline_parser ${name}`,
        problemOf(found) ?? '',
        'Set `multiline.custom` of the source, with patterns that use neither look-ahead nor look-behind.',
      )
      continue
    }
    if (machines.some(({ end }) => end !== undefined) || (found.end !== undefined && machines.length > 0)) {
      context.gap(
        section,
        `multiline.parser ${name}`,
        'a source joins lines with one set of rules, and these parsers end messages in different ways',
        'Set `multiline.custom` of the source: start, condition and mode.',
      )
      continue
    }
    if (!found.isExact) reportStates(section, `multiline.parser ${name}`, context)
    if (runtime !== undefined && section.kind === 'input') {
      const reason = `Fluent Bit uses the first parser that accepts a line, so \`${runtime}\` takes the lines of pods; the source also joins them by these rules`
      const nearest = 'Nothing, if stack traces must be one event. Otherwise, remove `multiline` of the source.'
      context.replaced(section, `multiline.parser ${name}`, reason, nearest)
    }
    machines.push(found)
  }
  return joinedBy(machines)
}

/** Whether rules apply to the line as the source reads it. The source of pods has already parsed the format of the runtime. */
function readsLine(definition: Section, { kind, entries }: Section): boolean {
  const parser = lastValue(definition, 'parser')?.toLowerCase()
  if (parser === undefined) return true
  const paths = entries.filter(({ key }) => key === 'path').flatMap(({ value }) => value.split(','))
  return kind === 'input' && runtimeParsers.has(parser) && paths.every((path) => isPodLog(path.trim()))
}

export function reportStates(place: Place, subject: string, context: Context): void {
  context.replaced(
    place,
    subject,
    'the conversion merges the states of its rules: a line that matches any rule continues the event',
    'Compare a few stack traces with `penstock run`.',
  )
}

/** One pair of patterns for all machines; undefined if there are none. */
export function joinedBy(machines: readonly Machine[]): Joined | undefined {
  if (machines.length === 0) return undefined
  const end = machines.find((each) => each.end !== undefined)?.end
  const custom = {
    start: either(machines.flatMap(({ starts }) => starts)),
    condition: end ?? either(machines.flatMap(({ others }) => others)),
    mode: end === undefined ? 'continue_through' : 'halt_before',
    timeoutMs: Math.max(...machines.map(({ timeoutMs }) => timeoutMs)),
  } as const
  return { pods: { custom }, file: ofFile(custom) }
}

interface Custom {
  readonly start: string
  readonly condition: string
  readonly mode: MultilineMode
  readonly timeoutMs: number
}

const ofFile = ({ start, condition, mode, timeoutMs }: Custom) => ({
  start_pattern: start,
  condition_pattern: condition,
  mode,
  timeout_ms: timeoutMs,
})

/** Events whose first line matches a pattern. */
export function startingWith(start: string, timeoutMs: number): Joined & { readonly problem: string | undefined } {
  const custom = { start, condition: start, mode: 'halt_before', timeoutMs } as const
  return { pods: { custom }, file: ofFile(custom), problem: multilineProblems(ofFile(custom))[0]?.message }
}

const either = (patterns: readonly string[]) =>
  patterns.length === 1 ? (patterns[0] ?? '') : patterns.map((text) => `(?:${text})`).join('|')

/** The problem of the patterns of a machine; undefined if there is none. */
export function problemOf({ starts, others, end, timeoutMs }: Machine): string | undefined {
  const patterns = { start_pattern: either(starts), condition_pattern: end ?? either(others) }
  return multilineProblems({ ...patterns, mode: 'continue_through', timeout_ms: timeoutMs })[0]?.message
}

/** A Ruby pattern without its slashes. `^` and `$` match at line ends within the text. */
export const bare = (text: string) => `(?m)${text.replace(/^\/(.*)\/$/s, '$1')}`

interface Rule {
  readonly from: readonly string[]
  readonly regex: string
  readonly to: string
}

/** The rules of a definition; undefined if no rule begins an event, or no rule continues one. */
function machineOf(definition: Section): Machine | undefined {
  const rules = entriesOf(definition, 'rule').flatMap((entry): Rule[] => {
    const [from, regex, to] = [...entry.value.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map((part) => part[1] ?? '')
    if (from === undefined || regex === undefined || to === undefined) return []
    return [{ from: from.split(',').map((state) => state.trim()), regex: bare(regex), to }]
  })
  const starts = rules.filter(({ from }) => from.includes('start_state'))
  const others = rules.filter(({ from }) => from.some((state) => state !== 'start_state'))
  if (starts.length === 0 || others.length === 0) return undefined
  const leaving = (state: string) => others.filter(({ from }) => from.includes(state)).map(({ regex }) => regex)
  const wanted = [...new Set(others.map(({ regex }) => regex))].sort().join('\n')
  const states = [...new Set(rules.map(({ to }) => to))]
  const end = others.length === 1 ? endOf(others[0]?.regex ?? '') : undefined
  return {
    ...(end === undefined ? {} : { end }),
    starts: starts.map(({ regex }) => regex),
    others: [...new Set(others.map(({ regex }) => regex))],
    isExact: states.every((state) => [...new Set(leaving(state))].sort().join('\n') === wanted),
    timeoutMs: Number(lastValue(definition, 'flush_timeout') ?? 4000) || 4000,
  }
}

/** For a pattern of lines that do not begin with X, returns X. */
function endOf(regex: string): string | undefined {
  const found = /^(\(\?m\))\^\(\?!(.*)\)(?:\.[*+]\$?)?$/s.exec(regex)
  const [, flag = '', text = ''] = found ?? []
  let depth = 0
  for (const [sign] of text.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|[()]/gs)) {
    if (sign === '(') depth++
    else if (sign === ')' && depth-- === 0) return undefined
  }
  return found === null ? undefined : `${flag}^(?:${text.replace(/^\^/, '')})`
}
