import { expect, test } from 'vitest'
import { type AppLine, appLines, appTexts, type LineKind, Stamp } from './app-lines.ts'

const count = 20_000

/** The line after the agent has joined its parts. */
function joined(line: AppLine): string {
  const prefix = '2026-01-01T00:00:00.000000000Z stdout F '.length
  return Buffer.concat(line.parts.map(({ bytes }) => bytes.subarray(prefix, -1))).toString()
}

function stamped(kind: LineKind): string[] {
  const stamp = new Stamp(1)
  stamp.tick()
  return appLines(kind, count, 1).map((line, number) => {
    stamp.write(line, number % 100, Math.floor(number / 100))
    return joined(line)
  })
}

const shapeOf = (text: string) => Object.keys(JSON.parse(text) as object).join()

test('the seed determines the lines', () => {
  expect(appTexts('mixed', 1000, 7)).toEqual(appTexts('mixed', 1000, 7))
  expect(appTexts('mixed', 1000, 7)).not.toEqual(appTexts('mixed', 1000, 8))
})

test('all lines are objects, with thousands of key sequences', () => {
  expect(new Set(stamped('mixed').map(shapeOf)).size).toBeGreaterThan(4000)
  expect(new Set(stamped('shapes').map(shapeOf)).size).toBe(count)
  expect(new Set(stamped('keys').map(shapeOf)).size).toBe(count)
  expect(new Set(stamped('one-shape').map(shapeOf)).size).toBe(1)
})

test('a typical line has about 215 bytes', () => {
  const common = appTexts('mixed', count, 1).filter((text) => !/"(html|request|ratio|text|stack|dump)":/.test(text))
  const bytes = common.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  expect(Math.abs(bytes / common.length - 215)).toBeLessThan(15)
})

const members = {
  level: 0.96,
  msg: 0.93,
  status: 0.6,
  method: 0.55,
  path: 0.6,
  duration: 0.6,
  bytes: 0.5,
  caller: 0.45,
  user: 0.5,
  trace: 0.4,
  region: 0.4,
  retry: 0.2,
}

test('each of the twelve members has its own probability', () => {
  const found = Object.fromEntries(Object.keys(members).map((name) => [name, 0]))
  for (const text of stamped('mixed')) {
    for (const name of Object.keys(JSON.parse(text) as object)) if (name in found) (found[name] as number)++
  }
  for (const [name, share] of Object.entries(members)) {
    expect(Math.abs((found[name] as number) / count - share), name).toBeLessThan(0.015)
  }
})

test.each([
  ['times in nanoseconds', /"generated_at":1\d{18}[,}]/, 1],
  ["Go's escapes", /"html":"[^"]*\\u003c/, 0.05],
  ['nested objects whose keys are not sorted', /"headers":\{"x-zone":"b","accept":/, 0.05],
  ['floats with more digits than a number keeps', /"ratio":\d\.\d{17,}/, 0.05],
  ['letters of several bytes', /"text":"[^"]*[^\0-\u{7f}]/u, 0.05],
  ['stack traces of 8 to 30 lines', /"stack":"[^"\\]*(?:\\n\\tat [^\\"]+){8,30}"/, 0.005],
])('lines contain %s, in the share that the page promises', (_, pattern, share) => {
  const found = stamped('mixed').filter((text) => pattern.test(text)).length
  expect(found / (count * share)).toBeGreaterThan(share === 1 ? 0.999 : 0.8)
  expect(found / (count * share)).toBeLessThan(1.2)
})

test('the runtime splits some lines, also within characters, and splits do not change the line', () => {
  const cut = appLines('mixed', count, 1).filter(({ parts }) => parts.length > 1)
  const tags = (line: AppLine) => line.parts.map(({ bytes }) => String.fromCharCode(bytes[38] as number)).join('')
  const isLong = ({ parts }: AppLine) => (parts[0]?.bytes.length as number) > 16_384
  expect(cut.filter((line) => !isLong(line)).length / (count / 200)).toBeCloseTo(1, 0)
  expect(cut.filter(isLong).length / (count / 5000)).toBeGreaterThanOrEqual(0.5)
  expect(cut.filter(isLong).length / (count / 5000)).toBeLessThanOrEqual(2)
  expect(cut.map(tags).every((text) => /^P+F$/.test(text))).toBe(true)
  expect(cut.some(({ parts }) => ((parts.at(-1)?.bytes[40] as number) & 0xc0) === 0x80)).toBe(true)
  expect(cut.map(joined).some((text) => text.includes('\u{fffd}'))).toBe(false)
})

test('a line contains file, number and time', () => {
  const [line] = appLines('one-shape', 1, 1) as [AppLine]
  const before = Date.now()
  const stamp = new Stamp(1)
  stamp.tick()
  stamp.write(line, 42, 1234)
  const text = line.parts[0]?.bytes.toString() ?? ''
  const [, prefixTime = ''] = /^(\S+)Z stdout F \{/.exec(text) ?? []
  const [, ms = '', rest = ''] = /"generated_at":(\d{13})(\d{6}),/.exec(text) ?? []
  expect(text).toMatch(new RegExp(`"id":"bench-042-000001234-00-${ms}"`))
  expect(prefixTime).toBe(`${new Date(Number(ms)).toISOString().slice(0, 23)}${rest}`)
  expect(Number(ms) - before).toBeGreaterThanOrEqual(0)
})
