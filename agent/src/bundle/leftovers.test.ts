// Files that a removed pipeline has left on the disk: a real buffer, and positions as stored by a reader.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { bufferFolder } from '../buffers/folder.ts'
import { minDiskBuffer } from '../config/component-options.ts'
import { loadConfigObject } from '../config/load.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { Topology } from '../topology/run.ts'
import { Leftovers, leftoverGraceMs, maxAsked } from './leftovers.ts'
import type { BundleRunner } from './runner.ts'

let dataDir = ''
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'penstock-leftovers-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const sinkId = 'shop/a/out'

/** Runs a sink that delivers nothing until its buffer contains events, which stay there. */
async function leaveEvents(): Promise<void> {
  const server = createServer((_, response) => response.writeHead(503).end())
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const loaded = loadConfigObject({
    data_dir: dataDir,
    sources: { 'shop/a/in': { type: 'demo_logs', format: 'shuffle', lines: ['x'], interval: 0, count: 40 } },
    sinks: {
      [sinkId]: {
        ...{ type: 'http', inputs: ['shop/a/in'], encoding: { codec: 'json' }, healthcheck: false },
        uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        buffer: { type: 'disk', max_size: minDiskBuffer },
      },
    },
  })
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join('\n'))
  const topology = await Topology.start(loaded.config, { logger: silentLogger, metrics: new Metrics() })
  await vi.waitFor(() => expect(topology.sinks.get(sinkId)?.buffer.events).toBe(40), { timeout: 30_000 })
  await topology.stop(0)
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
}

function agent() {
  const metrics = new Metrics()
  const state = { running: new Map<string, string>(), state: 'Loaded', sinks: new Map<string, never>() }
  const runner = {
    get state() {
      return { state: state.state }
    },
    *pipelines() {
      for (const [id, uid] of state.running) yield { id, part: { pipeline: { uid } } }
    },
  } as unknown as BundleRunner
  const topology = { sinks: state.sinks, retiringSink: () => undefined }
  const leftovers = new Leftovers({ dataDir, topology, runner, logger: silentLogger, metrics })
  return {
    ...{ state, leftovers },
    lost: () => metrics.sum('buffer_discarded_events_total', { component_id: sinkId, intentional: 'false' }),
    /** One heartbeat, with this response of the operator. */
    beat: (gone: readonly string[], at: number) => {
      const found = leftovers.found()
      leftovers.answered(gone, at)
      return found
    },
  }
}

const gone = [`buffer ${sinkId}`]

test('an unused buffer is removed after some time, and its events are counted as lost', async () => {
  await leaveEvents()
  const { beat, lost } = agent()
  const folder = bufferFolder(dataDir, sinkId)
  expect(beat(gone, 0)).toEqual([{ kind: 'buffer', id: sinkId }])
  beat(gone, leftoverGraceMs - 1)
  expect([existsSync(folder), lost()]).toEqual([true, 0])
  beat(gone, leftoverGraceMs)
  expect([existsSync(folder), lost()]).toEqual([false, 40])
  expect(beat(gone, leftoverGraceMs + 1)).toEqual([])
})

test('the time restarts if the buffer is needed meanwhile or its sink runs again', async () => {
  mkdirSync(bufferFolder(dataDir, sinkId), { recursive: true })
  const { beat, state } = agent()
  const folder = bufferFolder(dataDir, sinkId)
  beat(gone, 0)
  beat([], leftoverGraceMs / 2) // the Pipeline was applied again, or is suspended
  beat(gone, leftoverGraceMs)
  expect(existsSync(folder)).toBe(true)
  state.sinks.set(sinkId, undefined as never)
  expect(beat(gone, 2 * leftoverGraceMs)).toEqual([])
  expect(existsSync(folder)).toBe(true)
  state.sinks.clear()
  // Without a complete bundle, the agent asks about nothing and removes nothing.
  state.state = 'Waiting'
  expect(beat(gone, 4 * leftoverGraceMs)).toEqual([])
  expect(existsSync(folder)).toBe(true)
})

test('positions belong to the uid of their pipeline, which is also known after a restart', () => {
  const cursors = join(dataDir, 'cursors', 'uid-a', 'app')
  mkdirSync(cursors, { recursive: true })
  writeFileSync(join(cursors, 'checkpoints.json'), '{}')
  mkdirSync(join(dataDir, 'cursors', 'uid-of-nobody'))
  const before = agent()
  before.state.running.set('shop/a', 'uid-a')
  expect(before.leftovers.found()).toEqual([])
  const { beat, state } = agent()
  // A new Pipeline with the same name.
  state.running.set('shop/a', 'uid-new')
  const key = ['cursors uid-a']
  expect(beat(key, 0)).toEqual([{ kind: 'cursors', id: 'uid-a', pipeline: 'shop/a' }])
  expect(existsSync(cursors)).toBe(true)
  beat(key, leftoverGraceMs)
  expect(existsSync(join(dataDir, 'cursors', 'uid-a'))).toBe(false)
  expect(existsSync(join(dataDir, 'cursors', 'uid-of-nobody'))).toBe(true)
})

test('among many leftovers, needed ones do not delay the others', () => {
  const { beat, state } = agent()
  // Suspended: 250 of them.
  const needed = Array.from({ length: 5 * maxAsked }, (_, index) => `shop/a-${String(index).padStart(3, '0')}/out`)
  const ids = [...needed, sinkId]
  for (const id of ids) mkdirSync(bufferFolder(dataDir, id), { recursive: true })
  const asked = new Set<string>()
  for (let turn = 0; turn < 6; turn++) {
    const found = beat(gone, 0)
    expect(found).toHaveLength(maxAsked)
    for (const { id } of found) asked.add(id)
  }
  expect([...asked].sort()).toEqual(ids.toSorted())
  // The operator reports it as gone each time it is asked, and does not mention it in other responses.
  for (let turn = 0; turn < 6; turn++) beat(gone, leftoverGraceMs - 1)
  expect(existsSync(bufferFolder(dataDir, sinkId))).toBe(true)
  for (let turn = 0; turn < 6; turn++) beat(gone, leftoverGraceMs)
  expect(existsSync(bufferFolder(dataDir, sinkId))).toBe(false)
  for (const id of needed) expect(existsSync(bufferFolder(dataDir, id))).toBe(true)
  // The agent never asks about a running pipeline.
  for (const id of needed) state.sinks.set(id, undefined as never)
  expect(beat([], leftoverGraceMs)).toEqual([])
})
