import { expect, test } from 'vitest'
import type { LogEvent } from '../event/log.ts'
import { parseSyslog } from '../formats/syslog.ts'
import { startSource } from '../testing/harness.ts'

const ip = String.raw`\d+\.\d+\.\d+\.\d+`

test.each<[string, (message: string) => boolean]>([
  [
    'apache_common',
    (line) =>
      new RegExp(
        `^${ip} - \\w+ \\[\\d\\d/\\w{3}/\\d{4}:[\\d:]{8} \\+0000\\] "[A-Z]+ /\\S* HTTP/1.1" \\d{3} \\d+$`,
      ).test(line),
  ],
  [
    'apache_error',
    (line) =>
      new RegExp(
        `^\\[\\w{3} \\w{3} \\d\\d [\\d:]{8} \\d{4}\\] \\[\\w+:\\w+\\] \\[pid \\d+:tid \\d+\\] \\[client ${ip}:\\d+\\] .`,
      ).test(line),
  ],
  ['json', (line) => typeof JSON.parse(line).request === 'string'],
  ['syslog', (line) => parseSyslog(line)?.['version'] === 1],
  ['bsd_syslog', (line) => typeof parseSyslog(line)?.['procid'] === 'number'],
])('format %s', async (format, fits) => {
  await using source = await startSource('demo_logs', { format, interval: 0, count: 20 })
  const events = (await source.received(20)) as LogEvent[]
  await source.stop()
  expect(source.sent).toHaveLength(20)
  expect(source.events.counts.get('component_received_bytes_total')).toBeGreaterThan(20 * 20)
  for (const event of events) {
    expect(event.fields['message']).toSatisfy(fits)
    expect(event.fields['source_type']).toBe('demo_logs')
  }
})

test('shuffle draws from the lines, and decoding applies', async () => {
  await using source = await startSource('demo_logs', {
    format: 'shuffle',
    lines: ['{"a":1}'],
    interval: 0.001,
    count: 3,
    decoding: { codec: 'json' },
  })
  const events = (await source.received(3)) as LogEvent[]
  expect(events[2]?.fields).toMatchObject({ a: 1, source_type: 'demo_logs' })
})
