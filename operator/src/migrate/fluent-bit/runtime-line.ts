// Parsers for complete lines of a container runtime, such as `2026-01-02T03:04:05.123456789Z stdout F text`. The source of pods has already
// parsed such a line, so the fields of the parser become the parts of the line that its groups match.

import { textLiteral } from '@penstock/agent/config'
import { ownName } from './own-time.ts'
import { entriesOf, isOn, lastValue, type Section } from './sections.ts'
import { rubyLike } from './tags.ts'

export interface LineField {
  readonly name: string
  /** The expression for its value. */
  readonly value: string
  /** Whether it is the text that the program wrote. */
  readonly isText: boolean
}

/** Fields; `parsed` if they are not whole parts of the line; undefined if the expression does not match such lines. */
export type LineFields = readonly LineField[] | 'parsed' | undefined

/** The parts of a line in their order, between which there is a space. */
const parts = ['time', 'stream', 'flag', 'text'] as const
type Part = (typeof parts)[number]

/** The time of the line as the runtime wrote it. */
export const timeText = 'format_timestamp(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.fZ") ?? null'

const alone: Readonly<Record<Part, string>> = { time: timeText, stream: '.stream', flag: '"F"', text: '.message' }
const joined: Readonly<Record<Part, string>> = {
  time: '(format_timestamp(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.fZ") ?? "")',
  stream: '(string(.stream) ?? "")',
  flag: '"F"',
  text: '(string(.message) ?? "")',
}

const joinedBy = (some: readonly Part[]) => some.map((part) => joined[part]).join(' + " " + ')

/** The expression for the complete line. */
export const wholeLine = joinedBy(parts)

/** Texts of programs. An expression may match only some of them. */
const texts = ['a text', '{"a": "b"}', '[INFO] a', '2026-01-02 03:04:05 INFO a']

/** The fields that a parser with an expression finds. */
export function fieldsOfLine(parser: Section): LineFields {
  const text = lastValue(parser, 'regex') ?? ''
  const regex = new RegExp(rubyLike(text), 'd')
  for (const sample of texts) {
    const values: Readonly<Record<Part, string>> = {
      time: '2026-01-02T03:04:05.123456789Z',
      stream: 'stdout',
      flag: 'F',
      text: sample,
    }
    const found = regex.exec(parts.map((part) => values[part]).join(' '))?.indices?.groups
    if (found === undefined) continue
    if (entriesOf(parser, 'types').length > 0) return 'parsed'
    const bounds = parts.map((_, index) => {
      const start = parts.slice(0, index).reduce((sum, part) => sum + values[part].length + 1, 0)
      return { start, end: start + values[parts[index] ?? 'text'].length }
    })
    const first = new Map(bounds.map(({ start }, index) => [start, index]))
    const last = new Map(bounds.map(({ end }, index) => [end, index]))
    const fields = Object.entries(found).flatMap(([name, range]): (LineField | undefined)[] => {
      // A group that takes no part in the match gives no field.
      if (range === undefined || isTimeOf(parser, name)) return []
      const [from, to] = [first.get(range[0]), last.get(range[1])]
      if (from === undefined || to === undefined || to < from) return [undefined]
      const own = parts.slice(from, to + 1)
      const [only = 'text'] = own
      return [
        {
          name: ownName(name),
          value: own.length === 1 ? alone[only] : joinedBy(own),
          isText: own.length === 1 && only === 'text',
        },
      ]
    })
    return fields.includes(undefined) ? 'parsed' : fields.filter((field) => field !== undefined)
  }
  // Another expression may match lines of some programs. Docker writes the names of the parts into the line.
  return /stdout|stderr|\(\?<stream>/.test(text) && !/"(?:log|stream)\\?"/.test(text) ? 'parsed' : undefined
}

/** Whether a group has the time of the line, which then is not a field. */
const isTimeOf = (parser: Section, name: string) =>
  lastValue(parser, 'time_format') !== undefined &&
  name === (lastValue(parser, 'time_key') ?? 'time') &&
  !isOn(lastValue(parser, 'time_keep'), false)

/** Lines for a line without a text, whose field the parser leaves out. */
export const emptyLines = (parser: Section, fields: readonly LineField[]): readonly string[] =>
  isOn(lastValue(parser, 'skip_empty_values'), true)
    ? fields
        .filter(({ isText }) => isText)
        .map(({ name }) => `if .${textLiteral(name)} == "" { del(.${textLiteral(name)}) }`)
    : []
