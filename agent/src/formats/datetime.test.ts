import { expect, test } from 'vitest'
import type { Timestamp } from '../event/timestamp.ts'
import {
  compileStrftime,
  formatTimestamp,
  guessTimestamp,
  parseRfc2822,
  parseRfc3339,
  parseTimestamp,
  strftime,
} from './datetime.ts'
import { findZone, utc, type Zone, zoneOfProgram } from './timezone.ts'

const at = (text: string): Timestamp => {
  const timestamp = parseRfc3339(text)
  if (timestamp === undefined) throw new TypeError(text)
  return timestamp
}
const zone = (name: string): Zone => {
  const found = findZone(name)
  if (found === undefined) throw new TypeError(name)
  return found
}

test.each([
  ['%F', '2024-02-09'],
  ['%s', '1707455167'],
  ['%d/%b/%Y:%T %z', '09/Feb/2024:05:06:07 +0000'],
  ['%A, %d %B %Y', 'Friday, 09 February 2024'],
  ['%u %w %e %C %j %q', '5 5  9 20 040 1'],
  ['%f %.f %.3f %.6f %3f %9f', '089000000 .089 .089 .089000 089 089000000'],
  ['%c', 'Fri Feb  9 05:06:07 2024'],
  ['%r %l %P %p', '05:06:07 AM  5 am AM'],
  ['%-d %_d %0e', '9  9 09'],
  ['%Z %:z %::z', 'UTC +00:00 +00:00:00'],
  ['%G-W%V %U %W %g', '2024-W06 05 06 24'],
  ['%+', '2024-02-09T05:06:07.089+00:00'],
  ['%n%t%%', '\n\t%'],
  ['', ''],
])('%s formats as %s', (pattern, text) => {
  expect(formatTimestamp(strftime(pattern), at('2024-02-09T05:06:07.089Z'))).toBe(text)
})

test.each([
  ['%z %:z %::z %:::z', '+0919 +09:19 +09:18:59 +09'],
  ['%s', '-3155673600'],
  ['%0s', '-3155673600'],
])('%s formats an instant before the time of time zones as %s', (pattern, text) => {
  expect(formatTimestamp(strftime(pattern), at('1870-01-01T00:00:00Z'), zone('Asia/Tokyo'))).toBe(text)
})

test.each([
  ['%Y %-Y %_Y', '0012-01-01T00:00:00Z', '0012 12   12'],
  ['%0s %_s', '1970-01-01T00:00:10Z', '000000010        10'],
  ['%0s', '1969-12-31T23:59:55Z', '-00000005'],
])('%s pads the numbers of %s', (pattern, instant, text) => {
  expect(formatTimestamp(strftime(pattern), at(instant))).toBe(text)
})

test.each(['%Q', '%', '%-F', 'a %', '%_Z'])('the pattern %s is refused', (pattern) => {
  expect(compileStrftime(pattern).ok).toBe(false)
})

test.each([
  ['2024-07-01T12:00:00Z', 'America/New_York', '2024-07-01 08:00:00 EDT -0400'],
  ['2024-03-31T00:59:59Z', 'Europe/Berlin', '2024-03-31 01:59:59 CET +0100'],
  ['2024-03-31T01:00:00Z', 'Europe/Berlin', '2024-03-31 03:00:00 CEST +0200'],
  ['2024-07-01T12:00:00Z', 'Asia/Kolkata', '2024-07-01 17:30:00 IST +0530'],
  ['2024-07-01T12:00:00Z', 'Europe/Dublin', '2024-07-01 13:00:00 IST +0100'],
  ['2024-02-01T12:00:00Z', 'Asia/Jerusalem', '2024-02-01 14:00:00 IST +0200'],
  ['2024-02-01T12:00:00Z', 'America/Adak', '2024-02-01 02:00:00 HST -1000'],
  ['2024-02-01T12:00:00Z', 'Asia/Dubai', '2024-02-01 16:00:00 +04 +0400'],
  ['2024-02-01T12:00:00Z', 'Japan', '2024-02-01 21:00:00 JST +0900'],
  ['1970-01-01T00:00:10Z', 'Europe/London', '1970-01-01 01:00:10 BST +0100'],
  ['2024-02-01T12:00:00Z', 'GMT', '2024-02-01 12:00:00 GMT +0000'],
])('%s in %s is %s', (instant, name, text) => {
  expect(formatTimestamp(strftime('%F %T %Z %z'), at(instant), zone(name))).toBe(text)
})

test.each([
  ['Europe/Berlin', true],
  ['europe/berlin', false],
  ['Etc/UTC', true],
  ['utc', false],
  ['', true],
  ['local', true],
])('a program may name the zone "%s": %s', (name, isKnown) => {
  expect(zoneOfProgram(name) !== undefined).toBe(isKnown)
})

test('equal offsets of one zone have the abbreviations of their time', () => {
  const abbreviationIn = (name: string, instants: readonly string[]) =>
    instants.map((instant) => formatTimestamp(strftime('%Z'), at(instant), zone(name)))
  expect(abbreviationIn('America/Indiana/Knox', ['2000-01-01T00:00:00Z', '2024-07-01T00:00:00Z'])).toEqual([
    'EST',
    'CDT',
  ])
  expect(abbreviationIn('America/Cancun', ['1997-07-01T00:00:00Z', '2024-07-01T00:00:00Z'])).toEqual(['CDT', 'EST'])
})

test.each([
  ['2024-02-29 10:11:12', '%F %T', 'UTC', '2024-02-29T10:11:12Z'],
  ['2024-02-29T10:11:12.5+02:00', '%+', 'UTC', '2024-02-29T08:11:12.500Z'],
  ['1704067200.5', '%s%.f', 'UTC', '2024-01-01T00:00:00.500Z'],
  ['1704067200', '%s', 'Europe/Rome', '2024-01-01T00:00:00Z'],
  ['1704067200 01:00', '%s %R', 'Europe/Rome', '2024-01-01T00:00:00Z'],
  ['1704067200 00:00', '%s %R', 'Europe/Rome', undefined],
  ['1704067200 01', '%s %d', 'Europe/Rome', '2024-01-01T00:00:00Z'],
  ['1704067200 Tue', '%s %a', 'Europe/Rome', undefined],
  ['1729989000 2024-10-27 02:30', '%s %F %R', 'Europe/Rome', '2024-10-27T00:30:00Z'],
  ['1729992600 2024-10-27 02:30', '%s %F %R', 'Europe/Rome', '2024-10-27T01:30:00Z'],
  ['Thu Feb 29 10:11:12 2024', '%c', 'UTC', '2024-02-29T10:11:12Z'],
  ['2024-02-29 1:05 PM', '%Y-%m-%d %I:%M %p', 'UTC', '2024-02-29T13:05:00Z'],
  ['2024-02-29 10:11:12,345', '%F %T,%3f', 'UTC', '2024-02-29T10:11:12.345Z'],
  ['2024-02-29T10:11:12 +0530', '%FT%T %z', 'UTC', '2024-02-29T04:41:12Z'],
  ['07-Jun-2023 04:05+01:30', '%d-%b-%Y %R %:z', 'UTC', '2023-06-07T02:35:00Z'],
  ['2024-07-01 12:00:00', '%F %T', 'America/New_York', '2024-07-01T16:00:00Z'],
  ['2024-W09-4 00:00', '%G-W%V-%u %R', 'UTC', '2024-02-29T00:00:00Z'],
  ['2024-060 00:00', '%Y-%j %R', 'UTC', '2024-02-29T00:00:00Z'],
  ['2024 08 Thu 01:02', '%Y %U %a %R', 'UTC', '2024-02-29T01:02:00Z'],
  ['2024 09 Thu 01:02', '%Y %W %a %R', 'UTC', '2024-02-29T01:02:00Z'],
  ['10/Oct/2000:13:55:36 -0700', '%d/%b/%Y:%T %z', 'UTC', '2000-10-10T20:55:36Z'],
  // Incomplete dates and times, contradictions, and local times that do not exist or are ambiguous.
  ['2024-02-29', '%F', 'UTC', undefined],
  ['24-2-9', '%y-%m-%d', 'UTC', undefined],
  ['10:11', '%H:%M', 'UTC', undefined],
  ['2024-02-29 10:11:12 UTC', '%F %T %Z', 'UTC', undefined],
  ['Friday 2024-02-29 00:00:00', '%A %F %T', 'UTC', undefined],
  ['2023-02-29 00:00:00', '%F %T', 'UTC', undefined],
  ['1704067200123', '%s%3f', 'UTC', undefined],
  ['2024-03-31 02:30:00', '%F %T', 'Europe/Berlin', undefined],
  ['2024-10-27 02:30:00', '%F %T', 'Europe/Berlin', undefined],
])('%s with %s in %s', (text, pattern, name, expected) => {
  expect(parseTimestamp(strftime(pattern), text, zone(name))?.toString()).toBe(
    expected === undefined ? undefined : at(expected).toString(),
  )
})

test.each([
  ['2024-02-29T10:11:12Z', '2024-02-29T10:11:12Z'],
  ['2024-02-29 10:11:12.123456789+01:00', '2024-02-29T09:11:12.123456789Z'],
  ['2024-02-29t10:11:12.1z', '2024-02-29T10:11:12.100Z'],
  ['1969-12-31T23:59:59.9Z', '1969-12-31T23:59:59.900Z'],
  ['2024-02-30T10:11:12Z', undefined],
  ['2024-02-29T10:11:12', undefined],
  ['2024-02-29T10:11:12.Z', undefined],
  ['2024-02-29T10:11:12+0100', undefined],
  ['2024-02-29T25:11:12Z', undefined],
  ['2024-02-29T10:11:12Z ', undefined],
])('RFC 3339: %s', (text, expected) => {
  expect(parseRfc3339(text)?.toString()).toBe(expected)
})

test.each([
  ['Thu, 29 Feb 2024 10:11:12 +0100', '2024-02-29T09:11:12Z'],
  ['29 Feb 2024 10:11 GMT', '2024-02-29T10:11:00Z'],
  ['Fri, 29 Feb 2024 10:11:12 +0100', undefined],
])('RFC 2822: %s', (text, expected) => {
  expect(parseRfc2822(text)?.toString()).toBe(expected)
})

test.each([
  ['2024-02-29 10:11:12', '2024-02-29T09:11:12Z'],
  ['29-Feb-2024 10:11:12', '2024-02-29T09:11:12Z'],
  ['02/29/2024:10:11:12', '2024-02-29T09:11:12Z'],
  ['Thu Feb 29 10:11:12 2024', '2024-02-29T09:11:12Z'],
  ['1704067200', '2024-01-01T00:00:00Z'],
  ['2024-02-29T10:11:12Z', '2024-02-29T10:11:12Z'],
  ['29/Feb/2024:10:11:12 +0200', '2024-02-29T08:11:12Z'],
  ['yesterday', undefined],
])('%s is guessed', (text, expected) => {
  expect(guessTimestamp(text, zone('Europe/Rome'))?.toString()).toBe(expected)
})

test('names of zones', () => {
  expect(findZone('UTC')).toBe(utc)
  expect(findZone('Etc/UTC')).toBe(utc)
  expect(findZone('NOPE')).toBeUndefined()
  expect(findZone('+01:00')).toBeUndefined()
  expect(findZone('local')).toBeDefined()
})
