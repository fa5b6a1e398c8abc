// An event as one short line for people: `12:41:03.250 INFO  web-x2x7p request served method=GET status=200`. The time of day is in
// UTC. The line contains no line breaks and no control codes, except our colours.

import { isObject, type Value, type ValueObject } from '../event/value.ts'
import { printable } from '../printable.ts'
import { writeJson } from './json.ts'
import { plainText } from './key-value.ts'

/** How to display the lines. */
export interface Screen {
  readonly color: boolean
  /** Columns of the terminal: longer lines are truncated. */
  readonly columns?: number | undefined
}

/** Narrower terminals show a shorter time and origin, to leave room for fields. */
const narrow = 100
const wholeSeconds = '12:41:03'.length

/** Fields in which programs write the severity of an event. */
const levelFields = ['level', 'severity', 'log_level', 'lvl']

/** Fields about an event's origin that the name of its pod, container or host makes redundant. */
const originFields: ReadonlySet<string> = new Set([
  'timestamp',
  'timestamp_end',
  'source_type',
  'stream',
  'file',
  'host',
  'orchestrator',
])

const styles = {
  dim: '\u001b[2m',
  bold: '\u001b[1m',
  red: '\u001b[31m',
  green: '\u001b[32m',
  yellow: '\u001b[33m',
  cyan: '\u001b[36m',
} as const
export type Style = keyof typeof styles

const levelStyles: Readonly<Record<string, Style>> = {
  TRACE: 'dim',
  DEBUG: 'dim',
  INFO: 'green',
  NOTICE: 'green',
  WARN: 'yellow',
  WARNING: 'yellow',
  ERROR: 'red',
  CRITICAL: 'red',
  FATAL: 'red',
  PANIC: 'red',
}

/** A line under construction: it counts the remaining columns, and ends when there are none. */
class Line {
  #text = ''
  #left: number
  readonly #color: boolean

  constructor({ color, columns = Number.POSITIVE_INFINITY }: Screen) {
    this.#color = color
    this.#left = columns
  }

  /** Adds a word, preceded by a blank unless it is the first. */
  add(word: string, style?: Style): void {
    if (this.#left <= 0) return
    const shown = printable(`${this.#text === '' ? '' : ' '}${word}`.replaceAll('\n', '\\n').replaceAll('\t', ' '))
    const cut = shown.length <= this.#left ? shown : `${shown.slice(0, Math.max(0, this.#left - 1))}…`
    this.#left = cut === shown ? this.#left - shown.length : 0
    this.#text += style === undefined || !this.#color ? cut : `${styles[style]}${cut}\u001b[0m`
  }

  toString(): string {
    return this.#text
  }
}

/** Text in a style, if colours are enabled. */
export function styled(text: string, style: Style, color: boolean): string {
  return color ? `${styles[style]}${text}\u001b[0m` : text
}

/**
 * The line of a log event.
 * @param messageKey the field with its message
 */
export function prettyLog(fields: ValueObject, screen: Screen, messageKey = 'message'): string {
  const line = new Line(screen)
  const time = fields['timestamp']
  const clock = time === undefined || time === null ? undefined : timeOfDay(shownValue(time))
  const isNarrow = (screen.columns ?? Number.POSITIVE_INFINITY) < narrow
  if (clock !== undefined) line.add(isNarrow ? clock.slice(0, wholeSeconds) : clock, 'dim')
  const levelField = levelFields.find((name) => typeof fields[name] === 'string' && fields[name] !== '')
  if (levelField !== undefined) {
    const level = (fields[levelField] as string).toUpperCase()
    line.add(level.padEnd(5), levelStyles[level])
  }
  const origin = originOf(fields)
  if (origin.shown !== undefined) line.add(isNarrow ? withoutHash(origin.shown) : origin.shown, 'cyan')
  const message = fields[messageKey]
  if (message !== undefined && message !== null && message !== '') line.add(shownValue(message).trimEnd(), 'bold')
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || name === messageKey || name === levelField) continue
    if (name === 'timestamp' ? clock !== undefined : originFields.has(name) || podIn(value) !== undefined) continue
    if (typeof value === 'string' && origin.known.has(value)) continue
    line.add(`${name}=${typeof value === 'string' ? quoted(value) : shownValue(value)}`)
  }
  return line.toString()
}

/**
 * The line of a metric event.
 * @param text the metric as codec `text` writes it, without its time
 */
export function prettyMetric(text: string, time: string | undefined, screen: Screen): string {
  const line = new Line(screen)
  const clock = time === undefined ? undefined : timeOfDay(time)
  if (clock !== undefined) line.add(clock, 'dim')
  line.add(text)
  return line.toString()
}

/** The description of a pod, under its configured name: `orchestrator`, or `kubernetes` as in other agents. */
function podIn(field: Value | undefined): ValueObject | undefined {
  return field !== undefined && isObject(field) && typeof field['pod_name'] === 'string' ? field : undefined
}

/** The origin of an event: its pod, else its host; and the names made redundant. */
function originOf(fields: ValueObject): { shown: string | undefined; known: ReadonlySet<string> } {
  const names: string[] = []
  for (const field of Object.values(fields)) {
    const pod = podIn(field)
    if (pod === undefined) continue
    for (const name of ['pod_name', 'pod_namespace', 'container_name']) {
      const value = pod[name]
      if (typeof value === 'string') names.push(value)
    }
  }
  const host = fields['host']
  if (typeof host === 'string') names.push(host)
  return { shown: names[0], known: new Set(names) }
}

/** `web-…x2x7p` for the pod `web-6d9f7c5b8-x2x7p`: only the end distinguishes the pods of a ReplicaSet. */
function withoutHash(pod: string): string {
  return pod.replace(/-[bcdf-hj-np-tv-xz24-9]{6,10}-([bcdf-hj-np-tv-xz24-9]{5})$/, '-…$1')
}

/** `12:41:03.250` of an RFC 3339 time; undefined for other text. */
function timeOfDay(text: string): string | undefined {
  const ms = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString().slice(11, 23)
}

function shownValue(value: Value): string {
  if (typeof value === 'string') return value
  if (value === null) return 'null'
  return Array.isArray(value) || isObject(value) ? writeJson(value) : plainText(value)
}

function quoted(text: string): string {
  return text === '' || /[\s"=]/.test(text) ? JSON.stringify(text) : text
}
