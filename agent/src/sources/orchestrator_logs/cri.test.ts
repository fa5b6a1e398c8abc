import { expect, test } from 'vitest'
import { Timestamp } from '../../event/timestamp.ts'
import { CriParser, zoneOffset } from './cri.ts'

const parser = new CriParser(zoneOffset('UTC'))

function parse(text: string) {
  const bytes = Buffer.from(text)
  if (!parser.parse(bytes, 0, bytes.length)) return undefined
  const { timestamp, stream, partial, message } = parser
  return { time: timestamp.toString(), stream, partial, message: text.slice(message) }
}

test.each([
  ['2024-01-02T03:04:05.678901234Z stdout F hello', '2024-01-02T03:04:05.678901234Z', 'stdout', false, 'hello'],
  ['2024-01-02T03:04:05.678901235Z stderr P hel', '2024-01-02T03:04:05.678901235Z', 'stderr', true, 'hel'],
  ['2024-01-02T03:04:05.6Z stdout F:x:y hello', '2024-01-02T03:04:05.600Z', 'stdout', false, 'hello'],
  ['2024-01-02T03:04:05Z stdout F ', '2024-01-02T03:04:05Z', 'stdout', false, ''],
  ['2024-01-02T03:04:05Z stdout F', '2024-01-02T03:04:05Z', 'stdout', false, ''],
  ['2024-01-02T03:04:05.123456789123Z stdout F  two', '2024-01-02T03:04:05.123456789Z', 'stdout', false, ' two'],
  ['2024-01-02T03:04:05.5+02:30 stdout F x', '2024-01-02T00:34:05.500Z', 'stdout', false, 'x'],
  ['2024-01-02T03:04:05-08:00 stdout F x', '2024-01-02T11:04:05Z', 'stdout', false, 'x'],
  ['1969-12-31T23:59:59.999999999Z stdout F x', '1969-12-31T23:59:59.999999999Z', 'stdout', false, 'x'],
])('%s', (line, time, stream, partial, message) => {
  expect(parse(line)).toEqual({ time, stream, partial, message })
})

test.each([
  '',
  'hello',
  '2024-01-02T03:04:05Z',
  '2024-01-02T03:04:05Z stdout',
  '2024-01-02T03:04:05Z stdout X hello',
  '2024-01-02T03:04:05Z stdin F hello',
  '2024-01-02T03:04:05Z stdoutF hello',
  '2024-01-02T03:04:05Z stdout FF hello',
  '2024-01-02T03:04:05.Z stdout F hello',
  '2024-13-02T03:04:05Z stdout F hello',
  '2024-01-02T24:04:05Z stdout F hello',
  '2024-01-02 03:04:05Z stdout F hello',
  '2024-01-02T03:04:05+0200 stdout F hello',
  '{"log":"x","stream":"stdout","time":"2024-01-02T03:04:05Z"}',
])('%j has another format', (line) => {
  expect(parse(line)).toBe(undefined)
})

test('does not leak parts of an earlier line into a line of another second or a bad line', () => {
  expect(parse('2024-01-02T03:04:05.1Z stdout F a')?.time).toBe('2024-01-02T03:04:05.100Z')
  expect(parse('2024-01-02T03:99:05.1Z stdout F a')).toBe(undefined)
  expect(parse('2024-01-02T03:04:05.1Z stdout F a')?.time).toBe('2024-01-02T03:04:05.100Z')
  expect(parse('2024-01-02T03:04:06.1Z stdout F a')?.time).toBe('2024-01-02T03:04:06.100Z')
})

test('local times have winter and summer offsets', () => {
  const offset = zoneOffset('America/New_York')
  expect(offset(Date.UTC(2024, 0, 1, 12))).toBe(-5 * 3_600_000)
  expect(offset(Date.UTC(2024, 6, 1, 12))).toBe(-4 * 3_600_000)
  expect(new Timestamp(Date.UTC(2024, 6, 1, 12) - offset(Date.UTC(2024, 6, 1, 12)), 0).toString()).toBe(
    '2024-07-01T16:00:00Z',
  )
})
