import { expect, test } from 'vitest'
import { tapFormatter } from './tap-format.ts'

test('form pretty shows where an event was seen, and the event as a short line', async () => {
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
