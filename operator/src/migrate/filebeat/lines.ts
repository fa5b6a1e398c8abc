// The parsers of an input: JSON, syslog, filters of lines, and the longest line. They read the text of a line, and what is left of it
// becomes the field `message`.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { flagIn, option, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { below, isMap, itemsOf, type Tree, textOf } from '../loki/tree.ts'
import { regexLiteral } from '../otel/text.ts'
import { fieldOf } from './conditions.ts'
import { expansion, idLines, intoRoot, reportExpansion, syslogLines, withoutNulls } from './decoders.ts'
import { cutLines } from './fields.ts'
import { partOf } from './read.ts'

/** Parsers of `filestream` in their order; the older inputs have options for two of them. */
interface Parser {
  readonly name: string
  readonly tree: Tree
}

/** The parsers that an input lists. */
export const parsersOf = (part: Part): readonly Parser[] =>
  itemsOf(option(part, 'parsers')).flatMap((item) =>
    isMap(item) ? [...item.value].map(([name, tree]) => ({ name, tree })) : [],
  )

const options: Readonly<Record<string, readonly string[]>> = {
  container: ['stream', 'format'],
  ndjson: [
    ...['target', 'overwrite_keys', 'expand_keys', 'add_error_key', 'message_key', 'document_id'],
    ...['ignore_decoding_error', 'keys_under_root'],
  ],
  multiline: [
    ...['type', 'pattern', 'negate', 'match', 'timeout', 'count_lines', 'max_lines'],
    ...['flush_pattern', 'skip_newline'],
  ],
  include_message: ['patterns'],
  syslog: ['format', 'timezone', 'log_errors', 'add_error_key'],
}

/** The text of a line of JSON is in metadata, because the event contains only its fields. */
const lineText = (hasJson: boolean) => (hasJson ? 'string(%line) ?? string(.message) ?? ""' : 'string(.message) ?? ""')

/**
 * The steps of all parsers but those that the source runs itself. Reports parsers that run before lines are joined, because a source joins
 * lines first.
 */
export function parserSteps(part: Part, report: Report, isPods: boolean): readonly Step[] {
  const parsers = parsersOf(part)
  const isDocker = isPods && decodesDocker(part)
  const joinedAt = parsers.findIndex(({ name }) => name === 'multiline')
  let hasJson = false
  const steps = parsers.flatMap(({ name, tree }, index): readonly Step[] => {
    const own = partOf(name, tree)
    const known = options[name]
    if (known === undefined) {
      const nearest = 'Parse the field `message` in a remap transform.'
      report.gap(tree, `parser ${name}`, 'the parser has no counterpart', nearest)
      return []
    }
    report.options({ ...own, name: `parser ${name}` }, { options: Object.fromEntries(known.map((each) => [each, ''])) })
    if (name === 'ndjson' && isDocker) {
      hasJson = true
      return [remap(dockerLines(own, textIn(own, 'target') ?? '', true))]
    }
    if (index < joinedAt && name !== 'container') reportOrder(tree, name, report)
    if (name === 'ndjson') {
      hasJson = true
      reportExpansion(own, flagIn(own, 'expand_keys') === true, report)
      const read = (key: string) => textOf(below(tree, key))
      return [remap(jsonLines(read, read('target') ?? '', true, flagIn(part, 'keep_null') === true))]
    }
    if (name === 'include_message') return filters(textsIn(own, 'patterns'), '', ' || ', hasJson)
    if (name !== 'syslog') return []
    return [remap(syslogLines(own, report, flagIn(own, 'add_error_key') !== false))]
  })
  return [...steps, ...optionSteps(part, report, hasJson, isDocker)]
}

/** The options of the reader of JSON: those of a parser, or those of older inputs without their prefix. */
function readerOf(part: Part): Part | undefined {
  const parser = parsersOf(part).find(({ name }) => name === 'ndjson')
  if (parser !== undefined) return partOf('ndjson', parser.tree)
  const options = [...(isMap(part.tree) ? part.tree.value : [])].flatMap(([name, item]): [string, Tree][] =>
    name.startsWith('json.') ? [[name.slice('json.'.length), item]] : [],
  )
  return options.length === 0 ? undefined : { ...part, tree: { ...part.tree, value: new Map(options) } }
}

/** Whether an input writes the members of a line of JSON to the root of the event. */
export function decodesToRoot(part: Part): boolean {
  const reader = readerOf(part)
  if (reader === undefined) return false
  return parsersOf(part).length > 0
    ? (textIn(reader, 'target') ?? '') === ''
    : flagIn(reader, 'keys_under_root') === true
}

/**
 * Whether an input that does not know the format of container runtimes reads the format of Docker as JSON: objects with the text in `log`. The
 * source of pods decodes this format itself.
 */
export function decodesDocker(part: Part): boolean {
  const reader = readerOf(part)
  if (reader === undefined || !['log', 'filestream'].includes(part.name)) return false
  if (parsersOf(part).some(({ name }) => name === 'container')) return false
  const key = textIn(reader, 'message_key')
  return key === 'log' || (key === undefined && part.name === 'log')
}

/**
 * Gives an event the fields of an object in the format of Docker.
 * @param isParser whether the event keeps the text at the key as its message
 */
function dockerLines(reader: Part, target: string, isParser: boolean): string[] {
  const hasKey = textIn(reader, 'message_key') !== undefined
  const keeps = isParser && target === '' && flagIn(reader, 'overwrite_keys') !== true
  const at = (name: string) => fieldOf(target === '' ? name : `${target}.${name}`)
  return [
    '# The source decodes the format of Docker.',
    'text = string(.message) ?? ""',
    `%line = ${hasKey ? 'text' : '""'}`,
    'stream = del(.stream)',
    ...(isParser && hasKey ? [] : ['del(.message)']),
    // Only a reader with a key removes the line feed at the end of the text.
    ...(keeps ? [] : [`${at('log')} = text${hasKey ? '' : ' + "\\n"'}`]),
    `${at('stream')} = stream`,
    `${at('time')} = format_timestamp(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.9fZ") ?? null`,
  ]
}

/** The steps of `json` of older inputs, and of the filters of all inputs, which run after the parsers. */
function optionSteps(part: Part, report: Report, isDecoded: boolean, isDocker: boolean): readonly Step[] {
  const names = isMap(part.tree) ? [...part.tree.value.keys()].map(String) : []
  const has = (prefix: string) => names.some((name) => name.startsWith(prefix))
  const hasJson = isDecoded || has('json.')
  const reader = isDocker && has('json.') ? readerOf(part) : undefined
  if (has('json.') && has('multiline.') && !isDocker) reportOrder(part, 'json', report)
  const target = flagIn(part, 'json.keys_under_root') === true ? '' : 'json'
  const read = (key: string) => textIn(part, `json.${key}`)
  if (has('json.') && reader === undefined)
    reportExpansion({ ...part, name: 'json' }, read('expand_keys') === 'true', report)
  return [
    ...(reader === undefined ? [] : [remap(dockerLines(reader, target, false))]),
    ...(has('json.') && reader === undefined
      ? [remap(jsonLines(read, target, false, flagIn(part, 'keep_null') === true))]
      : []),
    ...filters(textsIn(part, 'include_lines'), '', ' || ', hasJson),
    ...filters(textsIn(part, 'exclude_lines'), '!', ' && ', hasJson),
    ...limitSteps(part, report),
  ]
}

const remap = (lines: readonly string[]): Step => ({ type: 'remap', text: lines.join('\n') })

function reportOrder({ file, line }: Tree | Part, name: string, report: Report): void {
  report.gap(
    { file, line },
    `multiline after ${name}`,
    `the old agent joins lines after \`${name}\`; a source joins them before`,
    'Set `multiline.custom` of the source for the lines as they are in the file.',
  )
}

function filters(regexes: readonly string[], sign: '' | '!', operator: string, hasJson: boolean): readonly Step[] {
  const tests = regexes.map((regex) => `${sign}match(${lineText(hasJson)}, ${regexLiteral(regex)})`)
  return tests.length === 0 ? [] : [{ type: 'filter', text: tests.join(operator) }]
}

/** The longest line; longer ones are cut. */
function limitSteps(part: Part, report: Report): readonly Step[] {
  const given = option(part, 'message_max_bytes') ?? option(part, 'max_bytes')
  const limit = bytesOf(textOf(given))
  if (limit !== undefined) return [remap(cutLines('.message', limit, true))]
  if (given !== undefined)
    report.gap(given, `${part.name}: longest line`, notBytes(textOf(given)), 'Write a number, such as `10485760`.')
  return []
}

/** Why a text is not a size. */
export const notBytes = (text = ''): string => `\`${text}\` is not a number of bytes`

/** The lines that a source must be able to read: Filebeat reads lines of any length, and cuts them. */
export const maxLineBytes = (part: Part): number =>
  Math.max(10_485_760, bytesOf(textIn(part, 'message_max_bytes') ?? textIn(part, 'max_bytes')) ?? 0)

/** A number of bytes, with a unit as Filebeat reads it. */
export function bytesOf(text: string | undefined): number | undefined {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-zA-Z]*)$/.exec(text ?? '') ?? []
  if (number === undefined) return undefined
  const factors: Readonly<Record<string, number>> = {
    '': 1,
    b: 1,
    k: 1000,
    kb: 1000,
    kib: 1024,
    m: 1_000_000,
    mb: 1_000_000,
    mib: 1_048_576,
    g: 1_000_000_000,
    gb: 1_000_000_000,
    gib: 1_073_741_824,
    t: 1e12,
    tb: 1e12,
    tib: 1_099_511_627_776,
  }
  const factor = factors[unit.toLowerCase()]
  return factor === undefined ? undefined : Math.trunc(Number(number) * factor)
}

/**
 * Decodes a line of JSON into fields. Filters then read the text at `message_key`, or nothing if there is none.
 * @param isParser whether the event keeps this text as its message
 */
function jsonLines(
  read: (name: string) => string | undefined,
  target: string,
  isParser: boolean,
  keepsNulls: boolean,
): string[] {
  const key = read('message_key')
  const id = read('document_id')
  const addsErrors = read('add_error_key') === 'true'
  const member = key === undefined ? '' : `decoded${fieldLiteral([key])}`
  const failed = (text: string) => `decoded.error = { "message": ${textLiteral(text)}, "type": "json" }`
  const written = [
    expansion,
    ...(target === '' ? intoRoot(read('overwrite_keys') === 'true', addsErrors) : [`${fieldOf(target)} = decoded`]),
  ]
  const isMissing = addsErrors
    ? [
        `if !exists(${member}) { ${failed(`Key '${key}' not found`)} } else if !is_string(${member}) { ${failed(`Value of key '${key}' is not a string`)} }`,
      ]
    : []
  return [
    'decoded = parse_json(string(.message) ?? "") ?? null',
    'if is_object(decoded) {',
    `  %line = ${key === undefined ? '""' : `string(${member}) ?? ""`}`,
    // The older inputs write an empty text in place of a value that is not a text.
    ...(key === undefined ? [] : isMissing.map((line) => `  ${line}`)),
    ...(key === undefined || isParser ? [] : [`  ${member} = %line`]),
    ...(keepsNulls ? [] : withoutNulls('string(.message) ?? ""')).map((line) => `  ${line}`),
    ...(id === undefined ? [] : idLines(id).map((line) => `  ${line}`)),
    '  del(.message)',
    ...written.map((line) => `  ${line}`),
    ...(key === undefined || !isParser ? [] : ['  if %line != "" { .message = %line }']),
    addsErrors ? '} else {' : '}',
    ...(addsErrors
      ? [...[...notJson(failed('Error decoding JSON'), member, isParser), ...written].map((line) => `  ${line}`), '}']
      : []),
  ]
}

/** Statements for a line that is not JSON. With a key, its text is there; the older inputs leave no message beside it. */
const notJson = (failed: string, member: string, isParser: boolean): readonly string[] => [
  'decoded = {}',
  failed,
  ...(member === ''
    ? []
    : ['%line = string(.message) ?? ""', `${member} = %line`, ...(isParser ? [] : ['del(.message)'])]),
]
