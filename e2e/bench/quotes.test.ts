// Speed and memory figures in other documents are rounded figures of e2e/bench/README.md, and there are no others.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../command.ts'

const read = (page: string) => readFileSync(resolve(root, page), 'utf8')
const figures = read('e2e/bench/README.md')

/** The numbers in the row that begins with this cell. */
function rowOf(cell: string): number[] {
  const row = figures.split('\n').find((line) => line.startsWith(`| ${cell} |`))
  if (row === undefined) throw new Error(`e2e/bench/README.md has no row ${cell}.`)
  return numbersIn(row.slice(cell.length + 4))
}

function numbersIn(text: string): number[] {
  return [...text.matchAll(/\d[\d,]*(?:\.\d+)?/g)].map(([number]) => Number(number.replaceAll(',', '')))
}

interface Quote {
  readonly page: string
  /** A pattern in which each group is a figure. */
  readonly text: RegExp
  /** The quoted figures: a row of the page, and the index of the number in it; `times` if the unit differs. */
  readonly of: readonly (readonly [row: string, place: number, times?: number])[]
}

const guide = 'operator/guide/operations.md'
const quotes: readonly Quote[] = [
  {
    page: 'README.md',
    text: /different shapes, take ([\d.]+) cores and (\d+) MB \(\[figures\]\(e2e\/bench\/README\.md\)\)/,
    of: [
      ['`steady --for 150`', 0],
      ['`steady --for 150`', 3],
    ],
  },
  {
    page: guide,
    text: /\| 1,000 idle files \| ([\d.]+) cores \| (\d+) MB \|/,
    of: [
      ['`idle-100`, `idle-1000`', 3, 0.01],
      ['`idle-100`, `idle-1000`', 1],
    ],
  },
  {
    page: guide,
    text: /100 pods, parsed \| ([\d.]+) to ([\d.]+) cores \| (\d+) MB, (\d+) MB at most \|/,
    of: [
      ['`steady --for 150`', 0],
      ['`steady --for 30`', 0],
      ['`steady --for 150`', 3],
      ['`steady --for 150`', 4],
    ],
  },
  {
    page: guide,
    text: /100 pods, not parsed \| ([\d.]+) cores \| (\d+) MB, (\d+) MB at most \|/,
    of: [
      ['`steady --format raw --for 30`', 0],
      ['`steady --format raw --for 30`', 3],
      ['`steady --format raw --for 30`', 4],
    ],
  },
  {
    page: guide,
    text: /one core, parsed \| 1 core \| (\d+) MB at ([\d,]+) lines\/s \|/,
    of: [
      ['`peak` (best and middle of three)', 7],
      ['`peak` (best and middle of three)', 5],
    ],
  },
  {
    page: guide,
    text: /one core, not parsed \| 1 core \| (\d+) MB at ([\d,]+) lines\/s \|/,
    of: [
      ['`peak --format raw`', 4],
      ['`peak --format raw`', 2],
    ],
  },
]

/** Rounds to the precision of the quote: its decimals or its trailing zeros. */
function rounded(value: number, quote: string): number {
  const text = quote.replaceAll(',', '')
  const decimals = text.includes('.') ? (text.split('.')[1] as string).length : 0
  const unit = decimals > 0 ? 10 ** -decimals : 10 ** (/0*$/.exec(text)?.[0].length ?? 0)
  return Number((Math.round(value / unit) * unit).toFixed(decimals))
}

test.each(quotes)('$page quotes $text', ({ page, text, of }) => {
  const [, ...quoted] = text.exec(read(page)) ?? []
  expect(quoted).toHaveLength(of.length)
  for (const [index, [row, place, times = 1]] of of.entries()) {
    const quote = quoted[index] as string
    expect(Number(quote.replaceAll(',', '')), `${quote} of ${row}`).toBe(
      rounded((rowOf(row)[place] as number) * times, quote),
    )
  }
})

test.each(['README.md', 'agent/ARCHITECTURE.md', 'operator/ARCHITECTURE.md'])('%s has no other figures', (page) => {
  const rest = quotes.reduce((text, quote) => (quote.page === page ? text.replace(quote.text, '') : text), read(page))
  const found = rest.match(/[\d.,]+ (?:cores?|MB|GB|lines\/s|lines a second|µs|ms of CPU|CPU-s|% of a core)\b.*/g)
  expect(found ?? []).toEqual([])
})
