import type { Key } from 'node:readline'
import { expect, test } from 'vitest'
import type { ComponentView } from '../api/components.ts'
import { AgentTopScreen } from './top-screen.ts'
import { rowsOf } from './top-table.ts'

const component = (component_id: string, kind: string, received: number, more: Partial<ComponentView> = {}) => ({
  component_id,
  component_kind: kind,
  component_type: `a_${kind}`,
  received_bytes_total: received * 10,
  received_events_total: received,
  received_event_bytes_total: received * 8,
  sent_events_total: received,
  sent_event_bytes_total: received * 8,
  sent_bytes_total: received * 9,
  errors_total: 0,
  discarded_events_total: 0,
  filtered_events_total: 0,
  ...more,
})

const size = { color: false, columns: 100, rows: 24 }
const look = (received: number) => ({
  version: '1.2.3',
  hostname: 'laptop',
  uptime_seconds: 7,
  components: [
    component('in', 'source', received),
    component('keep', 'transform', received * 2, { discarded_events_total: 5, filtered_events_total: 4 }),
    component('out', 'sink', received / 2, { buffer_events: 3, buffer_bytes: 30, inputs: ['keep'] }),
  ],
})

function screenWith(...keys: string[]): AgentTopScreen {
  const screen = new AgentTopScreen(false)
  screen.look(look(200), rowsOf(look(200), { look: look(100), seconds: 2 }))
  for (const key of keys) screen.press(key.length === 1 ? key : undefined, { name: key } as Key)
  return screen
}
const ids = (screen: AgentTopScreen) =>
  screen
    .text(size)
    .split('\n')
    .slice(2, -1)
    .map((line) => line.replace(/^> /, '').trim().split(' ')[0])

test('rows keep the order of the agent, and show rates, lost and filtered events', () => {
  const lines = screenWith().text(size).split('\n')
  expect(lines[0]).toBe('penstock-agent 1.2.3 on laptop, up 7 s')
  expect(lines[1]?.split(/ +/)).toEqual(
    'ID KIND TYPE IN IN/s OUT OUT/s BYTES ERRORS FILTERED LOST BUSY BUFFER'.split(' '),
  )
  expect(lines[3]?.split(/ +/)).toEqual('keep transform a_transform 400 100 400 100 3200 0 4 1 - -'.split(' '))
  expect(lines.at(-1)).toMatch(/^Enter: details .* q: quit$/)
})

test('a sink that its inputs wait for is named below the table', () => {
  const screen = new AgentTopScreen(false)
  const waiting = look(100)
  const components = waiting.components.map((one) =>
    one.component_id === 'out' ? { ...one, inputs_wait_seconds: 12 } : one,
  )
  screen.look({ ...waiting, components }, rowsOf({ ...waiting, components }, undefined))
  expect(screen.text(size).split('\n').at(-2)).toBe('The buffer of out has been full for 12 s: keep must wait.')
})

test('a terminal of 40 columns shows whole columns, and the key that quits', () => {
  const lines = screenWith('down')
    .text({ ...size, columns: 40 })
    .split('\n')
  expect(lines.slice(1, 3)).toEqual([
    '  ID    IN/s  OUT  OUT/s  ERRORS  LOST',
    '> in      50  200     50       0     0',
  ])
  expect(lines.at(-1)).toBe('Enter: details  q: quit')
  expect(lines.every((line) => line.length <= 40)).toBe(true)
})

test('keys sort by a column, and reverse the order', () => {
  const toIn = ['right', 'right', 'right', 'right']
  expect(ids(screenWith())).toEqual(['in', 'keep', 'out'])
  expect(ids(screenWith(...toIn))).toEqual(['keep', 'in', 'out'])
  expect(screenWith(...toIn).text(size)).toContain(' IN↓ ')
  expect(ids(screenWith(...toIn, 'r'))).toEqual(['out', 'in', 'keep'])
})

test('a filter shows components whose id contains the text; Escape removes it', () => {
  const typing = screenWith('/', 'k', 'e')
  expect(ids(typing)).toEqual(['keep'])
  expect(typing.text(size)).toContain('filter: ke_')
  typing.press(undefined, { name: 'escape' })
  expect(ids(typing)).toEqual(['in', 'keep', 'out'])
  const set = screenWith('/', 'k', 'e', 'return')
  expect(set.press(undefined, { name: 'escape' })).toBe(false)
  expect(ids(set)).toEqual(['in', 'keep', 'out'])
  expect(set.press(undefined, { name: 'escape' })).toBe(true)
})

test('Enter shows details of the selected component, Escape returns and then quits', () => {
  const screen = screenWith('down', 'down', 'down', 'return')
  expect(screen.text(size)).toMatch(/^out {2}\(sink a_sink\)\n {2}inputs +keep\n {2}events in +100, 25.0 a second\n/)
  expect(screen.text(size)).toContain('buffer      3 events, 30 bytes')
  expect(screen.press(undefined, { name: 'escape' })).toBe(false)
  expect(screen.text(size)).toContain('> out')
  expect(screen.press(undefined, { name: 'escape' })).toBe(true)
})

test('a paused screen keeps its figures', () => {
  const screen = screenWith('p')
  screen.look(look(999), rowsOf(look(999), undefined))
  expect(screen.text(size)).not.toContain('999')
  expect(screen.text(size)).toContain('PAUSED')
})

test('no screen exceeds the terminal, and the sorted column stays visible', () => {
  for (const columns of [20, 40, 60, 80]) {
    const screen = screenWith('left', 'down')
    const lines = screen.text({ color: false, columns, rows: 5 }).split('\n')
    expect(lines.length).toBeLessThanOrEqual(5)
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(columns)
  }
  expect(screenWith('left').text({ ...size, columns: 60 })).toContain('BUFFER↓')
})
