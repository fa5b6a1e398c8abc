// Logs of pods: the record that an input of Fluent Bit makes of a line, which `orchestrator_logs` has already parsed.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { bare, type Joined, runtimeParsers, startingWith } from './joining.ts'
import { ownName, reportParsedTime } from './own-time.ts'
import { decodingLines, findParser, parserLines } from './parsers.ts'
import type { Context, SourcePart } from './plugin.ts'
import { emptyLines, fieldsOfLine, type LineFields, timeText, wholeLine } from './runtime-line.ts'
import { entriesOf, isOn, lastValue, listOf as list, type Section } from './sections.ts'
import { shipped } from './shipped.ts'
import { foundPath, isOfFile, podsAt } from './tags.ts'

interface Read {
  readonly paths: readonly string[]
  readonly excluded: readonly string[]
  /** Options of the source that do not depend on the kind of file. */
  readonly shared: Readonly<Record<string, unknown>>
  readonly joined: Joined | undefined
}

export function podLogs(section: Section, context: Context, { paths, excluded, shared, joined }: Read): SourcePart {
  const steps: Step[] = []
  if (isOn(lastValue(section, 'skip_empty_lines'), false)) steps.push({ type: 'filter', text: '.message != ""' })
  const choice = podsAt(paths, excluded)
  if (choice !== undefined) steps.push({ type: 'filter', text: choice })
  reportIgnored(section, context)
  const { fields, after, parsing } = recordOf(section, context)
  reportLines(section, context)
  const isLinked = !isOfFile(section) || paths.every((path) => path.startsWith('/var/log/containers/'))
  const start = [
    '# The record in the form of Fluent Bit; the filter kubernetes adds the pod metadata later.',
    '%orchestrator = .orchestrator',
    ...(isLinked ? [] : ['%file = .file']),
    `. = { ${fields.join(', ')} }`,
  ]
  steps.push({ type: 'remap', text: [...start, ...after].join('\n') })
  if (parsing.length > 0) steps.push({ type: 'remap', text: parsing.join('\n') })
  const component = {
    type: 'orchestrator_logs',
    config: shared,
    ...(joined === undefined ? {} : { multiline: joined.pods }),
  }
  return { component, steps }
}

/** The option `Parser`, which Fluent Bit does not use with `multiline.parser`. */
export function ownParser(section: Section): string | undefined {
  return list(section, 'multiline.parser').length > 0 ? undefined : lastValue(section, 'parser')
}

/** Reports a parser that Fluent Bit does not use, unless the lines of `multiline.parser` have the same fields. */
export function reportIgnored(section: Section, context: Context): void {
  const parser = lastValue(section, 'parser')
  if (parser === undefined || ownParser(section) === parser || parser.toLowerCase() === 'docker') return
  context.replaced(
    section,
    `tail: parser ${parser}`,
    'with `multiline.parser`, Fluent Bit does not use `Parser`, so the record has the fields and the complete text of its lines',
    'Nothing to do for the same records. To parse the text, add a remap transform.',
  )
}

interface LineParser {
  readonly definition: Section | undefined
  readonly regex: string
  readonly isJson: boolean
  /** The fields that its expression finds in the complete line. */
  readonly line: LineFields
}

function lineParser(section: Section, context: Context): LineParser {
  const name = ownParser(section)
  const definition =
    name === undefined ? undefined : (findParser(name, context) ?? findParser(name.toLowerCase(), context))
  const format = definition === undefined ? undefined : lastValue(definition, 'format')?.toLowerCase()
  return {
    definition,
    regex: definition === undefined ? '' : (lastValue(definition, 'regex') ?? ''),
    // The lines of Docker are JSON.
    isJson: format === 'json',
    line: definition === undefined || format !== 'regex' ? undefined : fieldsOfLine(definition),
  }
}

/** The field of the record with the text of the line; undefined if the record does not have it. */
export function podLineKey(section: Section, context: Context): string | undefined {
  const { regex, line } = lineParser(section, context)
  if (line === 'parsed') return undefined
  if (line !== undefined) return line.find(({ isText }) => isText)?.name
  return plainKey(section, regex)
}

const plainKey = (section: Section, regex: string) =>
  /\(\?<message>/.test(regex) ? 'message' : (lastValue(section, 'key') ?? 'log')

interface PodRecord {
  /** The members of the record. */
  readonly fields: readonly string[]
  /** Lines that follow the record. */
  readonly after: readonly string[]
  /** Lines of a program of its own, which parses the text of the line, or the complete line. */
  readonly parsing: readonly string[]
}

function recordOf(section: Section, context: Context): PodRecord {
  const { definition, regex, isJson, line } = lineParser(section, context)
  const parser = ownParser(section)
  if (isJson && parser?.toLowerCase() !== 'docker') {
    context.replaced(
      section,
      `tail: parser ${parser}`,
      'a parser of JSON reads the lines of Docker, so the record has the fields of such a line, also on nodes with another runtime',
      'Compare the results with `penstock run`.',
    )
  }
  const pathKey = lastValue(section, 'path_key')
  const path = pathKey === undefined ? [] : [`${textLiteral(pathKey)}: ${foundPath(list(section, 'path'))}`]
  if (line === 'parsed') return parsedLine(section, parser ?? '', path, context)
  const decoding = definition === undefined ? [] : decodingLines(definition, '', context)
  if (line !== undefined && definition !== undefined) {
    if (line.some(({ name }) => name === ownName('timestamp'))) reportParsedTime(section, context)
    const fields = line.map(({ name, value }) => `${textLiteral(name)}: ${value}`)
    const after = emptyLines(definition, line)
    return { fields: [...fields, '"timestamp": .timestamp', ...path], after, parsing: decoding }
  }
  const isRuntime =
    parser === undefined ||
    isJson ||
    runtimeParsers.has(parser.toLowerCase()) ||
    (/\(\?<stream>/.test(regex) && /\(\?<(log|message)>/.test(regex))
  if (!isRuntime) {
    context.gap(
      section,
      `tail: parser ${parser}`,
      'the parser expects the complete line of the container runtime, which the source parses itself',
      'Parse the field `log` in a remap transform, or with a parser filter.',
    )
  }
  const multiline = list(section, 'multiline.parser')
  const keeps = definition !== undefined && keepsTime(definition)
  const fields = [
    `${textLiteral(plainKey(section, regex))}: .message`,
    '"stream": .stream',
    '"timestamp": .timestamp',
    ...(/\(\?<logtag>/.test(regex) ? ['"logtag": "F"'] : []),
    ...(multiline.some((word) => word === 'cri') ? ['"_p": "F"'] : []),
    ...(multiline.length > 0 || keeps ? [`"time": ${timeText}`] : []),
    ...path,
  ]
  return { fields, after: [], parsing: decoding }
}

/** The record of a parser whose groups divide the text of the line, too: it reads the complete line. */
function parsedLine(section: Section, parser: string, path: readonly string[], context: Context): PodRecord {
  const key = textLiteral(lastValue(section, 'key') ?? 'log')
  const pathKey = lastValue(section, 'path_key')
  const kept = pathKey === undefined ? [] : [`${textLiteral(pathKey)}: .${textLiteral(pathKey)}`]
  const others = [...kept, '"timestamp": .timestamp'].join(', ')
  const lines = parserLines(parser, `string(.${key}) ?? ""`, context, section) ?? []
  return {
    fields: [`${key}: ${wholeLine}`, '"timestamp": .timestamp', ...path],
    after: [],
    parsing: [...lines, `if is_object(parsed) { . = merge({ ${others} }, object!(parsed)) }`],
  }
}

/** Reports options that change how lines are read, and that the source of pods does not have. */
function reportLines(section: Section, context: Context): void {
  const isParsed = list(section, 'multiline.parser').some((word) => runtimeParsers.has(word))
  if (ownParser(section) === undefined && !isParsed) {
    context.gap(
      section,
      'tail: no parser of the runtime',
      'in Fluent Bit, the field `log` contained the complete line of the container runtime, with time and stream',
      "The source parses that line itself, and `log` contains only the program's own text. Change filters that parse the rest.",
    )
  }
  if (isOn(lastValue(section, 'multiline'), false)) {
    const reason = 'its parsers expect the complete line of the container runtime, which the source parses itself'
    context.gap(section, 'tail: Multiline', reason, 'Set `multiline.parser`, and convert again.')
  }
  if (charsetOf(section) !== undefined) {
    const reason = 'the source reads logs of pods as UTF-8'
    context.gap(section, `tail: encoding ${charsetOf(section)}`, reason, 'Let the program write UTF-8.')
  }
  if (lastValue(section, 'offset_key') !== undefined) {
    context.gap(section, 'tail: offset_key', 'lines of pods do not contain their position in the file', 'Remove it.')
  }
}

/** Whether the record of a line of Docker keeps the time of the line. */
function keepsTime(parser: Section): boolean {
  const isRead = lastValue(parser, 'time_format') !== undefined && (lastValue(parser, 'time_key') ?? 'time') === 'time'
  if (isOn(lastValue(parser, 'time_keep'), false)) return true
  // The parser `json` that Fluent Bit ships reads times of another format.
  const isOther = !/%[YFs+]/.test(lastValue(parser, 'time_format') ?? '%Y') || parser === shipped.get('json')
  return lastValue(parser, 'format')?.toLowerCase() === 'json' && (!isRead || isOther)
}

/** The beginning of an expression for a line of Docker, up to the text of the line, and that text up to its quote. */
const textOfDocker =
  /^\^?(?:\(\?<log>\(\?<="log":"\)|\\?\{?"log":"(?:\(\?<log>)?)(?<text>(?:\\.|[^"\\])*?)(?:\.[*+]\??)?\)?(?:\(\?<!\\\\\))?"/s

/**
 * `Docker_Mode_Parser` reads the first line of an event in the format of Docker. Its part for the text becomes the pattern of first lines.
 */
export function firstLinesOfDocker(section: Section, context: Context): Joined | undefined {
  const entry = entriesOf(section, 'docker_mode_parser').at(-1)
  if (entry === undefined) return undefined
  const definition = findParser(entry.value, context)
  const regex = definition === undefined ? '' : (lastValue(definition, 'regex') ?? '')
  const text = textOfDocker.exec(regex.replace(/^\/(.*)\/[imxo]*$/s, '$1'))?.groups?.['text']
  // A control character is a backslash and a letter in the format of Docker, so it matches `\S`.
  const plain = text?.replace(/^\\S/, '[\\S\\t]').replace(/\(\?!(\\?.)\)$/, '(?:[^$1]|$)')
  const timeout = 1000 * (seconds(lastValue(section, 'docker_mode_flush')) ?? 4)
  const found = plain === undefined || plain === '' ? undefined : startingWith(bare(`^${plain}`), timeout)
  if (found !== undefined && found.problem === undefined) return found
  const reason =
    definition === undefined
      ? 'the configuration does not define the parser'
      : (found?.problem ?? 'its expression is not one for the format of Docker')
  context.gap(entry, `docker_mode_parser ${entry.value}`, reason, 'Set `multiline.custom` of the source.')
  return undefined
}

/** Names of character sets that the sources know by another name. */
const charsets: Readonly<Record<string, string>> = { sjis: 'shift_jis', shiftjis: 'shift_jis', uhc: 'euc-kr' }

/** The character set of lines; undefined for UTF-8. */
export function charsetOf(section: Section): string | undefined {
  const name = (lastValue(section, 'unicode.encoding') ?? lastValue(section, 'generic.encoding'))?.toLowerCase()
  if (name === undefined || name === 'utf-8') return undefined
  // Without a byte order mark, Windows writes the smaller byte first.
  if (name === 'auto') return 'utf-16le'
  return (Object.hasOwn(charsets, name) ? charsets[name] : name)?.replace(/^win(\d)/, 'windows-$1')
}

/** A time such as `10`, `5m`, `2d`. */
export function seconds(text: string | undefined): number | undefined {
  const found = /^(\d+)([smhd]?)$/.exec(text ?? '')
  if (found === null) return undefined
  return Number(found[1]) * { '': 1, s: 1, m: 60, h: 3600, d: 86_400 }[found[2] as '' | 's' | 'm' | 'h' | 'd']
}
