// Syslog lines: RFC 5424, RFC 3164 and common variants. Missing parts give no field. RFC 5424 is tried first; a line is
// RFC 3164 if it has a date, with or without a priority before it.

import { Timestamp } from '../event/timestamp.ts'
import { fieldNames, getField, setField, type Value, type ValueObject } from '../event/value.ts'
import { daysFromCivil, daysInMonth, parseRfc3339 } from './datetime.ts'
import { utc, type Zone } from './timezone.ts'
import { trimmed, trimmedEnd } from './white-space.ts'

export const severities = ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug'] as const

const facilities = [
  'kern',
  'user',
  'mail',
  'daemon',
  'auth',
  'syslog',
  'lpr',
  'news',
  'uucp',
  'cron',
  'authpriv',
  'ftp',
  'ntp',
  'audit',
  'alert',
  'clockd',
  'local0',
  'local1',
  'local2',
  'local3',
  'local4',
  'local5',
  'local6',
  'local7',
] as const

/**
 * The fields of a line; undefined if it is not syslog. @param zone for dates without a zone @param now milliseconds
 * since the epoch, for dates without a year
 */
export function parseSyslog(line: string, zone: Zone = utc, now = Date.now()): ValueObject | undefined {
  return parse5424(line) ?? parse3164(line, zone, now)
}

const header5424 = /^<(\d{1,3})>(\d{1,3})\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+/

function parse5424(line: string): ValueObject | undefined {
  const header = header5424.exec(line)
  if (header === null) return undefined
  const [whole, priority, version, time, hostname, appname, procid, msgid] = header as unknown as string[]
  const timestamp = time === '-' ? undefined : parseRfc3339(time as string)
  if (timestamp === undefined && time !== '-') return undefined
  const fields: ValueObject = { message: '' }
  if (!setPriority(fields, Number(priority))) return undefined
  fields.version = Number(version)
  if (timestamp !== undefined) fields.timestamp = timestamp
  setWord(fields, 'hostname', hostname as string)
  setWord(fields, 'appname', appname as string)
  if (procid !== '-') fields.procid = processId(procid as string)
  setWord(fields, 'msgid', msgid as string)
  const from = (whole as string).length
  const end = line[from] === '-' ? from + 1 : parseElements(line, from, fields, true)
  if (end < 0) return undefined
  // The RFC marks UTF-8 with a byte order mark.
  const message = trimmed(line.slice(end))
  fields.message = message.charCodeAt(0) === 0xfeff ? message.slice(1) : message
  return fields
}

const date3164 =
  /^(?:<(\d{1,3})>)?\s*(?:(\d{4}-\d\d-\d\d[T ]\S+)(?=\s|$)|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\s+(\d{1,2})(?:\s+(\d{4}))?\s+(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?:?)/i
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
// One blank before each. A host may contain colons (IPv6, or before a port); a program ends at the first.
const host3164 = / (?!:(?:\s|$))(\S+?)(?=:?(?:\s|$))/y
const program3164 = / ([^\s:]+)/y
const tagged = /^([^[\]]*)\[([^\]]+)\]$/

function parse3164(line: string, zone: Zone, now: number): ValueObject | undefined {
  const header = date3164.exec(line)
  if (header === null) return undefined
  const [whole, priority, exact, monthName, day, year, hour, minute, second, fraction] = header as unknown as string[]
  const fields: ValueObject = { message: '' }
  if (priority !== undefined && !setPriority(fields, Number(priority))) return undefined
  const timestamp =
    exact !== undefined
      ? parseRfc3339(exact.replace(/:$/, ''))
      : dated(
          year === undefined ? undefined : Number(year),
          months.indexOf((monthName as string).toLowerCase()) + 1,
          Number(day),
          (Number(hour) * 3600 + Number(minute) * 60 + Number(second)) * 1000,
          Number((fraction ?? '').padEnd(9, '0')),
          zone,
          now,
        )
  if (timestamp === undefined || Number(hour ?? 0) > 23 || Number(minute ?? 0) > 59) return undefined
  fields.timestamp = timestamp
  // One or two words before the colon: host and program, or only one of them; a word with a process id is the program.
  let at = (whole as string).length
  host3164.lastIndex = at
  const first = host3164.exec(line)?.[1]
  if (first !== undefined) at = host3164.lastIndex
  program3164.lastIndex = at
  const second_ = first === undefined ? undefined : program3164.exec(line)?.[1]
  if (second_ !== undefined) at = program3164.lastIndex
  const program = tagged.exec(second_ ?? first ?? '')
  if (second_ !== undefined) {
    if (first !== '-') fields.hostname = first
    fields.appname = program === null ? second_ : program[1]
  } else if (program !== null) {
    fields.appname = program[1]
  } else if (first !== undefined) {
    fields.hostname = first
  }
  if (program !== null) fields.procid = processId(program[2] as string)
  const colon = /\s*:?\s*/y
  colon.lastIndex = at
  colon.exec(line)
  at = colon.lastIndex
  const end = line[at] === '[' ? parseElements(line, at, fields, false) : -1
  fields.message = end < 0 ? trimmedEnd(line.slice(at)) : trimmed(line.slice(end))
  return fields
}

function dated(
  year: number | undefined,
  month: number,
  day: number,
  timeMs: number,
  nano: number,
  zone: Zone,
  now: number,
): Timestamp | undefined {
  const present = new Date(now)
  // A December line that arrives in January belongs to last year.
  const guessed = month === 12 && present.getUTCMonth() === 0 ? present.getUTCFullYear() - 1 : present.getUTCFullYear()
  if (day < 1 || day > daysInMonth(year ?? guessed, month)) return undefined
  const instant = zone.instantOf(daysFromCivil(year ?? guessed, month, day) * 86_400_000 + timeMs)
  if (instant === undefined) return undefined
  const milli = Math.floor(nano / 1_000_000)
  return new Timestamp(instant + milli, nano - milli * 1_000_000)
}

function setPriority(fields: ValueObject, priority: number): boolean {
  if (priority > 191) return false
  fields.severity = severities[priority & 7] as string
  fields.facility = facilities[priority >> 3] as string
  return true
}

function setWord(fields: ValueObject, name: string, text: string): void {
  if (text !== '-') fields[name] = text
}

function processId(text: string): Value {
  return /^[+-]?\d{1,9}$/.test(text) ? Number(text) : text
}

const elementStart = /\[([^\s=\]"]+)/y
// Some senders write a blank after the equals sign.
const parameter = /\s+([^=\]]+)=\s*"((?:[^"\\]|\\.)*)"/sy
const ignoredElement = /\[[^\]]*\]/y

/**
 * Parses structured data; returns its end, or -1 if there is none, without setting fields. @param expected whether it must be here, so
 * that a malformed element is skipped; otherwise a malformed element, or one without parameters, is text
 */
function parseElements(line: string, from: number, fields: ValueObject, expected: boolean): number {
  const elements: [string, ValueObject][] = []
  let at = from
  while (line[at] === '[') {
    const element = elementAt(line, at)
    if (element !== undefined && (expected || fieldNames(element.fields).length > 0)) {
      elements.push([element.id, element.fields])
      at = element.end
      continue
    }
    ignoredElement.lastIndex = at
    if (!expected || ignoredElement.exec(line) === null) break
    at = ignoredElement.lastIndex
  }
  if (at === from) return -1
  for (const [id, element] of elements) {
    const old = getField(fields, id)
    setField(fields, id, typeof old === 'object' && old !== null ? { ...(old as ValueObject), ...element } : element)
  }
  return at
}

function elementAt(line: string, from: number): { id: string; fields: ValueObject; end: number } | undefined {
  elementStart.lastIndex = from
  const start = elementStart.exec(line)
  if (start === null) return undefined
  let end = elementStart.lastIndex
  const fields: ValueObject = {}
  for (;;) {
    parameter.lastIndex = end
    const match = parameter.exec(line)
    if (match === null) break
    end = parameter.lastIndex
    const text = (match[2] as string).replace(/\\(["\\\]n])/g, (_, char: string) => (char === 'n' ? '\n' : char))
    setField(fields, match[1] as string, text)
  }
  return line[end] === ']' ? { id: start[1] as string, fields, end: end + 1 } : undefined
}
