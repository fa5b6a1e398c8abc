// Text with `{{ field }}` placeholders and strftime items, compiled once and rendered for each event. The text outside
// placeholders is a strftime pattern, which formats the time of the event in UTC, or the current time if the event has none. The
// formatted text is reused while it is valid (a day, or a second), so a daily index name costs one comparison per event.

import { valueText } from './codecs/value-text.ts'
import { PenstockError } from './errors.ts'
import { LogEvent } from './event/log.ts'
import { type MetricEvent, singleTagValue } from './event/metric.ts'
import { getPath, type Path, parsePath } from './event/path.ts'
import { Timestamp } from './event/timestamp.ts'
import { compileStrftime, formatTimestamp, type Strftime, type StrftimeItem } from './formats/datetime.ts'
import { utc, type Zone } from './formats/timezone.ts'
import { instantOf } from './time-field.ts'

export interface Template {
  /** The text as the user wrote it. */
  readonly source: string
  /** True if the text is the same for every event. */
  readonly isStatic: boolean
  /** The fields that the text refers to. */
  readonly paths: readonly Path[]
  /** The data that determines the text: events with equal data have the same text; undefined if unknown. */
  readonly likeness: Likeness | undefined
  /**
   * The text for an event; undefined if it would be too long, or if fields are missing, which `missing` then returns.
   */
  render(event: LogEvent | MetricEvent): string | undefined
  /** Names of the missing fields, as written in the template. */
  missing(event: LogEvent | MetricEvent): string[]
  /** Number of events since the last call with an unreadable time, for which the current time was used. */
  readonly unreadableTimes: number
  takeUnreadableTimes(): number
}

/** The parts of an event that determine the texts of templates. */
export interface Likeness {
  /** Fields of the root whose values must be equal. */
  readonly fields: readonly string[]
  /** One of these fields, if it is a time of which only the second matters. */
  readonly second: string | undefined
  /** Whether the current time also matters, for events without a time. */
  readonly isDated: boolean
}

/** The data that determines the texts of all templates; undefined if unknown. */
export function commonLikeness(templates: readonly Template[]): Likeness | undefined {
  const fields = new Set<string>()
  let second: string | undefined
  let isDated = false
  for (const { likeness } of templates) {
    if (likeness === undefined) return undefined
    isDated ||= likeness.isDated
    for (const field of likeness.fields) fields.add(field)
    second ??= likeness.second
  }
  // If a template also inserts the field itself, all of its digits matter.
  const isShown = templates.some(({ paths }) => paths.some(({ segments }) => segments[0] === second))
  return { fields: [...fields], second: isShown ? undefined : second, isDated }
}

/**
 * Maximum number of characters from all fields together. Otherwise, a template that contains one field a thousand times
 * would turn each kilobyte into a megabyte. No name of a file, an index or a label is as long.
 */
export const maxJoinedLength = 65_536

/**
 * Compiles a template; throws a PenstockError if it is not valid.
 * @param timestampKey the field of log events with their time (`log_schema.timestamp_key`)
 * @param zone the zone of times in text form that have none
 */
export function compileTemplate(text: string, timestampKey = 'timestamp', zone: Zone = utc): Template {
  const parts = parse(text)
  if (typeof parts === 'string') throw new PenstockError('PEN_CONFIG_INVALID', parts)
  return new CompiledTemplate(text, parts, timestampKey, zone)
}

/** Why a template is not valid; undefined if it is. */
export function templateProblem(text: string): string | undefined {
  const parts = parse(text)
  return typeof parts === 'string' ? parts : undefined
}

type Part = TextPart | TimePart | FieldPart

interface TextPart {
  readonly kind: 'text'
  readonly text: string
}

interface TimePart {
  readonly kind: 'time'
  readonly pattern: Strftime
  /** True if the text is the same for a whole day. */
  readonly holdsForDay: boolean
  /** The day of `text`, counted from the epoch. */
  day: number
  text: string
}

interface FieldPart {
  readonly kind: 'field'
  readonly name: string
  readonly path: Path
  /** The name of the field if it is at the root, which is the usual case. */
  readonly key: string | undefined
}

function parse(text: string): Part[] | string {
  const parts: Part[] = []
  const placeholder = /\{\{([^}]+)\}\}/g
  let from = 0
  for (;;) {
    const match = placeholder.exec(text)
    const outside = text.slice(from, match === null ? undefined : match.index)
    if (outside !== '') {
      const pattern = compileStrftime(outside)
      if (!pattern.ok) return `Invalid strftime item in template ${JSON.stringify(text)}`
      if (pattern.items.every(isConstant)) {
        parts.push({ kind: 'text', text: formatTimestamp(pattern, new Timestamp(0, 0)) })
      } else {
        const holdsForDay = pattern.items.every((item) => isConstant(item) || isDate(item))
        parts.push({ kind: 'time', pattern, holdsForDay, day: Number.NaN, text: '' })
      }
    }
    if (match === null) return parts
    const name = (match[1] as string).trim()
    const path = parsePath(name)
    if (path === undefined) return `Invalid field path in template ${JSON.stringify(text)}`
    const first = path.segments[0]
    const key = path.root === 'event' && path.segments.length === 1 && typeof first === 'string' ? first : undefined
    parts.push({ kind: 'field', name, path, key })
    from = placeholder.lastIndex
  }
}

function isConstant(item: StrftimeItem): boolean {
  return item.kind === 'literal' || item.kind === 'space'
}

const withinDay = new Set(['hour', 'hour12', 'minute', 'second', 'nanosecond', 'unix'])

/** True for items that do not change within a day of UTC. */
function isDate(item: StrftimeItem): boolean {
  return item.kind === 'month' || item.kind === 'weekday' || (item.kind === 'number' && !withinDay.has(item.field))
}

class CompiledTemplate implements Template {
  readonly source: string
  readonly isStatic: boolean
  readonly paths: readonly Path[]
  readonly likeness: Likeness | undefined
  readonly #parts: readonly Part[]
  readonly #maxLength: number
  readonly #text: string
  readonly #timestampKey: string
  readonly #zone: Zone
  unreadableTimes = 0

  constructor(source: string, parts: readonly Part[], timestampKey: string, zone: Zone) {
    this.source = source
    this.#parts = parts
    this.isStatic = parts.every((part) => part.kind === 'text')
    this.#text = this.isStatic ? parts.map((part) => (part.kind === 'text' ? part.text : '')).join('') : ''
    this.paths = parts.flatMap((part) => (part.kind === 'field' ? [part.path] : []))
    // The text of a single field is no longer than its event.
    this.#maxLength = this.paths.length > 1 ? maxJoinedLength : Number.POSITIVE_INFINITY
    this.#timestampKey = timestampKey
    this.#zone = zone
    this.likeness = likenessOf(parts, timestampKey)
  }

  render(event: LogEvent | MetricEvent): string | undefined {
    if (this.isStatic) return this.#text
    let text = ''
    const parts = this.#parts
    for (let index = 0; index < parts.length; index++) {
      const part = parts[index] as Part
      if (part.kind === 'text') {
        text += part.text
      } else if (part.kind === 'time') {
        text += this.#time(part, event)
      } else {
        const value = fieldText(part, event)
        if (value === undefined) return undefined
        text += value
        if (text.length > this.#maxLength) return undefined
      }
    }
    return text
  }

  missing(event: LogEvent | MetricEvent): string[] {
    return this.#parts.flatMap((part) =>
      part.kind === 'field' && fieldText(part, event) === undefined ? [part.name] : [],
    )
  }

  takeUnreadableTimes(): number {
    const count = this.unreadableTimes
    this.unreadableTimes = 0
    return count
  }

  #time(part: TimePart, event: LogEvent | MetricEvent): string {
    const found = event instanceof LogEvent ? event.field(this.#timestampKey) : event.timestamp
    let instant = instantOf(found, this.#zone)
    if (instant === undefined) {
      if (found !== undefined && found !== null) this.unreadableTimes++
      instant = Timestamp.now()
    }
    if (!part.holdsForDay) return formatTimestamp(part.pattern, instant)
    const day = Math.floor(instant.ms / 86_400_000)
    if (day !== part.day) {
      part.text = formatTimestamp(part.pattern, instant)
      part.day = day
    }
    return part.text
  }
}

function likenessOf(parts: readonly Part[], timestampKey: string): Likeness | undefined {
  const fields = new Set<string>()
  let second: string | undefined
  for (const part of parts) {
    if (part.kind === 'time') {
      if (part.pattern.hasFraction) return undefined
      second = timestampKey
      fields.add(timestampKey)
    } else if (part.kind === 'field' && part.path.root === 'event') {
      const [first] = part.path.segments
      if (typeof first !== 'string') return undefined
      fields.add(first)
    }
  }
  return { fields: [...fields], second, isDated: second !== undefined }
}

function fieldText(part: FieldPart, event: LogEvent | MetricEvent): string | undefined {
  if (event instanceof LogEvent) {
    const value = part.key === undefined ? getPath(event, part.path) : event.field(part.key)
    return value === undefined || typeof value === 'string' ? value : valueText(value)
  }
  const [first, ...rest] = part.path.segments
  if (first === 'name' && rest.length === 0) return event.name
  if (first === 'namespace' && rest.length === 0) return event.namespace
  if (first !== 'tags' || rest.length === 0) return undefined
  const value = event.tags?.get(rest.join('.'))
  return value === undefined ? undefined : singleTagValue(value)
}
