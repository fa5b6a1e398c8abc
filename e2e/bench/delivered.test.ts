import { expect, test } from 'vitest'
import { type AppLine, appLines, Stamp } from './app-lines.ts'
import { arrivalRate, Delivered } from './delivered.ts'
import { faults } from './figures.ts'

const criPrefix = '2026-01-01T00:00:00.000000000Z stdout F '.length

/** Bodies with the lines of two files in the form of an agent: parsed, or as text in JSON. */
function events(format: 'json' | 'raw'): string[] {
  const stamp = new Stamp(1)
  const lines = appLines('mixed', 2000, 3)
  expect(lines.some(({ parts }) => parts.length > 2)).toBe(true)
  return lines.map((line, index) => {
    stamp.tick()
    stamp.write(line, index % 2, Math.floor(index / 2))
    const message = textOf(line)
    return JSON.stringify(format === 'json' ? (JSON.parse(message) as object) : { message })
  })
}

const textOf = ({ parts }: AppLine) => Buffer.concat(parts.map(({ bytes }) => bytes.subarray(criPrefix, -1))).toString()

function report(sent: readonly string[]): { lost: number; doubled: number } {
  const delivered = new Delivered()
  for (let from = 0; from < sent.length; from += 300) {
    delivered.take(Buffer.from(sent.slice(from, from + 300).join('\n')), Date.now())
  }
  const { received, damaged, doubled } = delivered.delivery()
  return { lost: 2000 - received + damaged, doubled }
}

const inPieces = (sent: readonly string[]) => sent.findIndex((event) => event.includes('-02: Error'))

test.each(['json', 'raw'] as const)('lines that arrive once are neither lost nor duplicated (%s)', (format) => {
  const figures = report(events(format))
  expect(figures).toEqual({ lost: 0, doubled: 0 })
  expect(faults(figures)).toBeUndefined()
})

test.each(['json', 'raw'] as const)('a lost line, a duplicated line and a lost piece are reported (%s)', (format) => {
  const sent = events(format)
  const cut = inPieces(sent)
  const damaged = (sent[cut] as string).replace(/piece-\d{3}-\d{9}-02/, '')
  expect(report(sent.toSpliced(700, 1))).toEqual({ lost: 1, doubled: 0 })
  expect(report([...sent, sent[700] as string])).toEqual({ lost: 0, doubled: 1 })
  expect(report(sent.toSpliced(700, 0, sent[700] as string))).toEqual({ lost: 0, doubled: 1 })
  expect(report(sent.with(cut, damaged))).toEqual({ lost: 1, doubled: 0 })
  expect(faults({ lost: 1, doubled: 0 })).toBe('Lost lines: 1. Lines delivered again: 0.')
})

test('latency counts from the time in the line, or from a later start', () => {
  const [line] = appLines('one-shape', 1, 1) as [AppLine]
  const stamp = new Stamp(1)
  stamp.tick()
  stamp.write(line, 0, 1)
  const body = Buffer.from(textOf(line))
  const written = Number(/-(\d{13})"/.exec(body.toString())?.[1])
  const fromLine = new Delivered()
  fromLine.take(body, written + 250)
  const fromLater = new Delivered()
  fromLater.originMs = written + 200
  fromLater.take(body, written + 250)
  expect([fromLine, fromLater].map((each) => each.delivery().latencyP99Ms)).toEqual([250, 50])
})

test('the rate is measured between the first body and the last relevant one', () => {
  const arrivals = [
    [1000, 500],
    [2000, 1500],
    [3000, 2500],
    [9000, 2600],
  ] as const
  expect(arrivalRate(arrivals, ([atMs]) => atMs < 5000)).toBe(1000)
  expect(arrivalRate(arrivals.slice(0, 1), () => true)).toBe(0)
})
