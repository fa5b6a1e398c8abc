import { describe, expect, test } from 'vitest'
import type { TopRow } from '../serving/observe/top-look.ts'
import { TopScreen, table } from './top-screen.ts'

function row(name: string, figures: Partial<TopRow> = {}): TopRow {
  return {
    kind: 'Pipeline',
    namespace: 'shop',
    name,
    agents: { asked: 2, answered: 2 },
    inPerSecond: 0,
    outPerSecond: 0,
    droppedPerSecond: 0,
    errorsPerSecond: 0,
    bufferedEvents: 0,
    bufferedBytes: 0,
    ...figures,
  }
}

const rows = [
  row('b', { inPerSecond: 5 }),
  row('a', { inPerSecond: 70, errorsPerSecond: 1 }),
  row('c', { lagSeconds: 3 }),
]
const wide = { columns: 120, rows: 24, color: false }

function screen(): TopScreen {
  const made = new TopScreen()
  made.look(rows)
  return made
}

/** Presses keys by name, or types a text. */
function press(on: TopScreen, ...keys: string[]): boolean {
  return keys.map((key) => on.press(key.length === 1 ? key : undefined, { name: key })).some((quits) => quits)
}

const namesOn = (on: TopScreen, size = wide) => [...on.text(size).matchAll(/shop\/(\w+)/g)].map(([, name]) => name)

describe('a screen of `top`', () => {
  test('is sorted by name first, by the figures of a column with its arrow, and reversed', () => {
    const on = screen()
    expect(namesOn(on)).toEqual(['a', 'b', 'c'])
    press(on, 'right', 'right')
    expect(on.text(wide)).toContain('IN/S↓')
    expect(namesOn(on)).toEqual(['a', 'b', 'c'])
    press(on, 'r')
    expect(on.text(wide)).toContain('IN/S↑')
    expect(namesOn(on)).toEqual(['c', 'b', 'a'])
    press(on, 'r', 'left', 'left', 'left')
    expect(on.text(wide)).toContain('LAG↓')
    expect(namesOn(on)).toEqual(['c', 'a', 'b'])
  })

  test('filters the names by a text, and reports if none matches', () => {
    const on = screen()
    expect(press(on, '/', 'q', 'backspace', 'b', 'return')).toBe(false)
    expect(namesOn(on)).toEqual(['b'])
    expect(on.text(wide)).toContain('filter: b')
    press(on, '/', 'z')
    expect(on.text(wide)).toContain('No name contains this text.')
    press(on, 'escape')
    expect(namesOn(on)).toEqual(['a', 'b', 'c'])
  })

  test('keeps its figures while it is paused', () => {
    const on = screen()
    press(on, 'p')
    on.look([row('new')])
    expect(namesOn(on)).toEqual(['a', 'b', 'c'])
    expect(on.text(wide)).toContain('PAUSED')
    press(on, 'p')
    on.look([row('new')])
    expect(namesOn(on)).toEqual(['new'])
  })

  test('selects a row by keys, keeps the selection when the row moves, and shows details until Escape', () => {
    const on = screen()
    press(on, 'down', 'down')
    expect(on.text(wide)).toContain('\n> shop/b ')
    expect(on.text(wide)).toContain('\n  shop/a ')
    press(on, 'r')
    expect(on.text(wide)).toContain('\n> shop/b ')
    expect(on.opened).toBeUndefined()
    press(on, 'return')
    expect(on.opened?.name).toBe('b')
    expect(on.text(wide)).toContain('Reading its status')
    on.describe(on.opened as TopRow, 'sink store\n  42 errors')
    const shown = on.text(wide)
    expect(shown).toContain('sink store\n  42 errors\n')
    expect(namesOn(on)).toEqual(['b'])
    expect(shown).toContain('Esc: back')
    // The status of another row arrives too late.
    on.describe(rows[1] as TopRow, 'other')
    expect(on.text(wide)).not.toContain('other')
    on.look([row('a')])
    expect(on.text(wide)).toContain('No agent runs it now.')
    expect(press(on, 'escape')).toBe(false)
    expect(on.opened).toBeUndefined()
    expect(namesOn(on)).toEqual(['a'])
  })

  test('shows details of the first row if none is selected, scrolls, and reads no status while it is paused', () => {
    const on = screen()
    press(on, 'return')
    expect(on.opened?.name).toBe('a')
    on.describe(on.opened as TopRow, Array.from({ length: 20 }, (_, at) => `line ${at}.`).join('\n'))
    const low = { ...wide, rows: 10 }
    expect(on.text(low).split('\n').length).toBeLessThanOrEqual(10)
    expect(on.text(low)).toContain('15 more lines')
    expect(on.text(low)).toContain('line 0.')
    press(on, ...Array.from({ length: 30 }, () => 'down'))
    expect(on.text(low)).toContain('line 19.')
    press(on, 'up')
    expect(on.text(low)).not.toContain('line 19.')
    press(on, 'p')
    expect(on.opened).toBeUndefined()
    expect(on.text(low)).toContain('PAUSED')
  })

  test('keeps the selected row visible on a low terminal', () => {
    const on = new TopScreen()
    on.look(Array.from({ length: 30 }, (_, at) => row(`p${String(at).padStart(2, '0')}`)))
    press(on, ...Array.from({ length: 12 }, () => 'down'))
    expect(on.text({ ...wide, rows: 8 })).toContain('> shop/p11')
  })

  test.each(['q', 'escape'])('quits at %s', (key) => {
    expect(press(screen(), key)).toBe(true)
  })

  test('quits at Ctrl-C, even while a filter is typed', () => {
    const on = screen()
    press(on, '/')
    expect(on.press('\u0003', { name: 'c', ctrl: true })).toBe(true)
  })

  test('fits a small terminal, and counts hidden rows', () => {
    const text = screen().text({ columns: 30, rows: 5, color: false })
    const lines = text.split('\n')
    expect(lines.length).toBeLessThanOrEqual(5)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(30)
    expect(text).toContain('1 more')
  })

  test('keeps the important columns on a narrow terminal, and truncates long names', () => {
    const on = new TopScreen()
    on.look([
      row('a-very-long-name-of-a-pipeline', { bufferedBytes: 39_845_888, bufferedEvents: 41_877, lagSeconds: 3 }),
    ])
    const lines = on.text({ ...wide, columns: 80 }).split('\n')
    expect(lines[0]).toMatch(/^PIPELINE↑ .* BUFFERED {2}LAG$/)
    expect(lines[1]).toMatch(/^shop\/a-very-\S*… .* 41877 {2}3 s$/)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
    // The agents that answer may differ from those that run the current version, which the column AGENTS of `kubectl get` counts.
    expect(on.text({ ...wide, columns: 120 }).split('\n')[0]).toMatch(/ ANSWERED .* SIZE/)
    expect(lines[0]).not.toContain('SIZE')
    expect(on.text({ ...wide, columns: 70 })).not.toContain('ANSWERED')
    // The order is by a column that is shown.
    for (let presses = 0; presses < 7; presses++) press(on, 'right')
    expect(on.text({ ...wide, columns: 60 })).toContain('SIZE↓')
  })

  test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1024, '1.0 KiB'],
    [39_845_888, '38 MiB'],
    [1_073_000_000, '1.0 GiB'],
    [2 ** 60, '1048576 TiB'],
  ])('shows %d bytes in a buffer as %s', (bufferedBytes, text) => {
    expect(table([row('a', { bufferedBytes })])).toContain(` ${text} `)
  })

  test('has colours for errors, and none without colours', () => {
    expect(screen().text({ ...wide, color: true })).toContain('\u001b[31mshop/a')
    expect(screen().text(wide)).not.toContain('\u001b')
  })

  test('reports that nothing runs', () => {
    expect(new TopScreen().text(wide)).toContain('No Pipeline is running.')
    expect(table([])).toBe('No Pipeline is running.')
  })
})
