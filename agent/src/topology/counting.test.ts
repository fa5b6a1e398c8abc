// Counters are exact at any moment: a reader between two batches finds every event that has passed, and no other.

import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import type { LogEvent } from '../event/log.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { Topology } from './run.ts'

test('counters are exact at every read', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-counting-'))
  const paths = ['a', 'bb', 'ccc'].map((name) => join(folder, `${name}.log`))
  const loaded = loadConfigObject({
    data_dir: folder,
    sources: { in: { type: 'file', include: [join(folder, '*.log')] } },
    transforms: { odd: { type: 'filter', inputs: ['in'], condition: "match!(.message, r'[13579]$')" } },
    sinks: { out: { type: 'blackhole', inputs: ['odd'] } },
  })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const metrics = new Metrics()
  const topology = await Topology.start(loaded.config, { logger: silentLogger, metrics })
  const sum = (name: string, id: string) => metrics.sum(name, { component_id: id })
  const seen = { in: 0, odd: 0, bytes: 0 }
  const found: object[] = []
  const expected: object[] = []
  for (const outlet of topology.outlets()) {
    const id = outlet.id as 'in' | 'odd'
    outlet.watch({
      look(batch) {
        seen[id] += batch.count
        for (const event of id === 'in' ? batch.events : []) {
          seen.bytes += String((event as LogEvent).fields['message']).length + 1
        }
        expected.push({ ...seen })
        found.push({
          in: sum('component_sent_events_total', 'in'),
          odd: sum('component_sent_events_total', 'odd'),
          bytes: sum('component_received_bytes_total', 'in'),
        })
      },
    })
  }
  try {
    let written = 0
    for (let round = 1; round <= 20; round++) {
      for (const path of paths) appendFileSync(path, `${path} ${round}\n`.repeat(round))
      written += paths.length * round
      await vi.waitFor(() => expect(seen.in).toBe(written), { timeout: 10_000, interval: 1 })
      expect(sum('component_received_events_total', 'in')).toBe(written)
      expect(sum('component_received_events_total', 'odd')).toBe(written)
      expect(sum('component_sent_events_total', 'out')).toBe(seen.odd)
      expect(sum('component_discarded_events_total', 'odd')).toBe(written - seen.odd)
    }
    expect(seen.odd).toBe(paths.length * 100)
    expect(found).toEqual(expected)
  } finally {
    await topology.stop(1000)
    rmSync(folder, { recursive: true, force: true })
  }
})
