// Buffers of old agents: an agent with the converted Pipeline reads lines, keeps them in the buffer of its sink, and delivers all of them.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fakeDestination } from '@penstock/agent/testing/destination'
import { afterAll, expect, test, vi } from 'vitest'
import { compileFiles } from '../compile/config.ts'
import { agentFor } from './agents.ts'
import { Draft } from './draft.ts'

const main = fileURLToPath(new URL('../../../agent/src/main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-buffers-'))
afterAll(() => rmSync(folder, { recursive: true }))

const lines = Array.from({ length: 200 }, (_, index) => `line ${index}`)
const input = join(folder, 'app.log')
writeFileSync(input, `${lines.join('\n')}\n`)

const fluentBit = (source: string, sink: string) => `[INPUT]
    Name tail
    Path ${input}
    Tag app
    Read_from_Head On
${source}
[OUTPUT]
    Name http
    Match *
    Host 127.0.0.1
    Port PORT
    Format json_lines
${sink}
`

const collector = (queue: string) => `receivers: { filelog: { include: [${input}], start_at: beginning } }
exporters: { otlphttp: { endpoint: "http://127.0.0.1:PORT", compression: none, sending_queue: ${queue} } }
extensions: { file_storage: {} }
service: { extensions: [file_storage], pipelines: { logs: { receivers: [filelog], exporters: [otlphttp] } } }
`

const vector = (buffer: string) => `sources: { app: { type: file, include: [${input}] } }
sinks:
  out:
    type: http
    inputs: [app]
    uri: http://127.0.0.1:PORT/
    encoding: { codec: json }
    buffer: ${buffer}
`

let written = 0
test.each([
  ['Fluent Bit, on disk', 'fluent-bit.conf', fluentBit('    Storage.Type filesystem', ''), { type: 'disk' }],
  [
    'Fluent Bit, on disk with a limit',
    'fluent-bit.conf',
    fluentBit('    Storage.Type filesystem', '    storage.total_limit_size 300M'),
    { type: 'disk', max_size: 300_000_000 },
  ],
  ['the collector, on disk', 'otel.yaml', collector('{ storage: file_storage }'), { type: 'disk' }],
  [
    'the collector, with few records in memory',
    'otel.yaml',
    collector('{ sizer: items, queue_size: 3 }'),
    { max_events: 3 },
  ],
  [
    'Vector, a chain of one buffer',
    'vector.yaml',
    vector('[{ type: disk, max_size: 268435488 }]'),
    { type: 'disk', max_size: 268_435_488 },
  ],
  ['Vector, in memory', 'vector.yaml', vector('{ type: memory, max_events: 2 }'), { type: 'memory', max_events: 2 }],
] as const)(
  '%s',
  async (_, name, text, buffer) => {
    // The first answer asks to wait, so lines stay in the buffer for a while.
    await using destination = await fakeDestination(503, 200)
    const given = { file: name, text: text.replace('PORT', new URL(destination.url).port) }
    const found = agentFor([given])
    const draft = new Draft()
    found?.agent.convert(found.files, () => [], draft)
    expect(draft.gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    const document = draft.document({ name: 'converted' })
    expect(document.toJSON().spec.sinks[0].config.buffer).toMatchObject(buffer)
    const pipeline = join(folder, `${++written}.yaml`)
    writeFileSync(pipeline, String(document))

    const config = join(folder, `${written}.json`)
    const data = mkdtempSync(join(folder, 'data-'))
    writeFileSync(config, JSON.stringify({ ...compileFiles([pipeline], { ownMachine: true }).config, data_dir: data }))
    const agent = spawn(process.execPath, ['--conditions=source', main, '--config', config], { stdio: 'ignore' })
    try {
      const arrived = () => {
        const accepted = destination.requests.slice(1).map((request) => request.text())
        return [...accepted.join('\n').matchAll(/"(line \d+)"/g)].map(([, line]) => line)
      }
      await vi.waitFor(() => expect(arrived().length).toBeGreaterThanOrEqual(lines.length), { timeout: 40_000 })
      // Batches that are sent at the same time arrive in any order.
      expect(arrived().toSorted()).toEqual(lines.toSorted())
    } finally {
      agent.kill('SIGKILL')
      await once(agent, 'exit')
    }
  },
  60_000,
)
