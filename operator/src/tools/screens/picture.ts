// Renders a terminal screen as SVG. The same screen gives the same bytes. Each run of text has a fixed position and width, so columns are
// aligned in any font.

import type { IBufferCell } from '@xterm/headless'
import type { Screen } from './terminal.ts'

/** Size of a character in points. */
const width = 8.4
const height = 18
const margin = 12

const ground = '#0d1117'
const plain = '#e6edf3'

/** The sixteen terminal colours, in shades that are readable on the dark background. */
const palette = [
  ...['#6e7681', '#ff7b72', '#3fb950', '#d29922', '#58a6ff', '#bc8cff', '#39c5cf', '#b1bac4'],
  ...['#8b949e', '#ffa198', '#56d364', '#e3b341', '#79c0ff', '#d2a8ff', '#56d4dd', '#f0f6fc'],
]

const escaped = (text: string) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`)

const number = (value: number) => String(Math.round(value * 100) / 100)

/** SVG attributes for the style of a cell; empty for plain text. */
function lookOf(cell: IBufferCell): string {
  const color = cell.isFgPalette() ? (palette[cell.getFgColor()] ?? plain) : undefined
  return [
    color === undefined ? '' : ` fill="${color}"`,
    cell.isBold() === 0 ? '' : ' font-weight="bold"',
    cell.isDim() === 0 ? '' : ' fill-opacity="0.65"',
  ].join('')
}

interface Run {
  readonly column: number
  readonly look: string
  text: string
}

/** Runs of a line with the same style, without surrounding blanks. */
function runsOf(screen: Screen, at: number): readonly Run[] {
  const line = screen.buffer.active.getLine(at)
  const runs: Run[] = []
  for (let column = 0; column < screen.cols; column++) {
    const cell = line?.getCell(column)
    if (cell === undefined || cell.getWidth() === 0) continue
    const look = lookOf(cell)
    const text = cell.getChars() || ' '
    const last = runs.at(-1)
    // Two blanks end a run, because they separate table columns.
    const isGap = last?.text.endsWith('  ')
    if (last === undefined || last.look !== look || isGap) runs.push({ column, look, text })
    else last.text += text
  }
  return runs.flatMap(({ column, look, text }) => {
    const shown = text.trim()
    return shown === '' ? [] : [{ column: column + text.length - text.trimStart().length, look, text: shown }]
  })
}

/** @param title the text for screen readers */
export function pictureOf(screen: Screen, title: string): string {
  const lines = Array.from({ length: screen.buffer.active.length }, (_, at) => runsOf(screen, at))
  const count = lines.findLastIndex((runs) => runs.length > 0) + 1
  const [wide, high] = [screen.cols * width + 2 * margin, count * height + 2 * margin]
  const texts = lines.slice(0, count).flatMap((runs, at) => {
    if (runs.length === 0) return []
    const spans = runs.map(({ column, look, text }) => {
      const place = `x="${number(margin + column * width)}" textLength="${number([...text].length * width)}"`
      return `<tspan ${place} lengthAdjust="spacingAndGlyphs"${look}>${escaped(text)}</tspan>`
    })
    return [`  <text y="${number(margin + at * height + 13)}">${spans.join('')}</text>`]
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${number(wide)}" height="${number(high)}" viewBox="0 0 ${number(wide)} ${number(high)}" role="img" xml:space="preserve">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="100%" height="100%" rx="6" fill="${ground}"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="${plain}">`,
    ...texts,
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}
