import { afterEach, expect, test, vi } from 'vitest'
import { tapFormatter } from './tap-format.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

test('format pretty shows the component of an event, and the event as a short line', async () => {
  const show = await tapFormatter('pretty', false)
  const shown = (event: object) =>
    show({ kind: 'event', output: 'parse' }, `{"kind":"event","event":${JSON.stringify(event)}}`)

  expect(shown({ timestamp: '2026-01-01T12:41:03.250Z', level: 'warn', message: 'slow', ms: 900 })).toBe(
    '[parse] 12:41:03.250 WARN  slow ms=900',
  )
  expect(shown({ name: 'up', kind: 'absolute', tags: { job: 'a' }, gauge: { value: 1 } })).toBe(
    '[parse] up{job="a"} = 1',
  )
})

test.each([
  { columns: 0, shown: '[parse] 12:41:03.250 WARN  slow ms=900' },
  { columns: 120, shown: '[parse] 12:41:03.250 WARN  slow ms=900' },
  { columns: 32, shown: expect.stringMatching(/^\[parse\] 12:41:03 WARN .{1,16}$/) },
])('format pretty is as wide as a terminal of $columns columns; 0 means unknown', async ({ columns, shown }) => {
  vi.stubGlobal('process', { ...process, env: process.env, stdout: { isTTY: true, columns } })
  const show = await tapFormatter('pretty', false)
  const event = { timestamp: '2026-01-01T12:41:03.250Z', level: 'warn', message: 'slow', ms: 900 }
  expect(show({ kind: 'event', output: 'parse' }, `{"kind":"event","event":${JSON.stringify(event)}}`)).toEqual(shown)
})
