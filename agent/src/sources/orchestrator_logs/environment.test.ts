import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { theKernel } from '../../bytes/kernel.ts'
import { parseOptions } from '../../schema/validate.ts'
import type { Tailer } from '../../tailing/tail.ts'
import { silentLogger } from '../../telemetry/logger.ts'
import { BytePod } from '../../testing/byte-pod.ts'
import { RecordedEvents, testGlobals } from '../../testing/harness.ts'
import { PodByteLane } from './byte-lane.ts'
import { CriParser } from './cri.ts'
import { environmentOf } from './environment.ts'
import { PodLogHub } from './hub.ts'
import { podLogOptions } from './options.ts'
import type { PodFile } from './pod-file.ts'

const dataDir = tmpdir()
const subscription = { cursor: 'uid/app', namespaces: ['shop'] }
const turns = { next: async () => {}, spend: <T>(work: () => T) => work() }
const fields = { id: 'shop/p/app', globals: testGlobals(dataDir), logger: silentLogger, events: new RecordedEvents() }

function options() {
  const checked = parseOptions(podLogOptions, { self_node_name: 'node-1', logs_dir: dataDir })
  if (!checked.ok) throw new Error('The options are wrong.')
  return checked.value
}

function hubOf(): PodLogHub {
  const target = {
    server: new URL('http://127.0.0.1:9'),
    ca: undefined,
    cert: undefined,
    key: undefined,
    verify: true,
    serverName: undefined,
    namespace: undefined,
    authorization: () => undefined,
  }
  return new PodLogHub({
    node: 'node-2',
    target,
    logsDir: dataDir,
    dataDir,
    logger: silentLogger,
    events: new RecordedEvents(),
  })
}

test.each([
  { given: 'a hub and no subscription', withHub: true, more: {} },
  { given: 'a hub, a share of the thread and no subscription', withHub: true, more: { turns } },
  { given: 'a share of the thread alone', withHub: false, more: { turns } },
  { given: 'a subscription and no hub', withHub: false, more: { subscription, turns } },
])('a source of a bundle is refused unless the bundle limits its reads: $given', async ({ withHub, more }) => {
  const hub = hubOf()
  try {
    const context = { ...fields, stopping: AbortSignal.abort(), ...(withHub ? { hub } : {}), ...more }
    await expect(environmentOf(options(), context, true)).rejects.toMatchObject({
      code: 'PEN_INTERNAL',
      message: 'The bundle does not list the pods that the source shop/p/app may read.',
    })
  } finally {
    await hub.close()
  }
})

test('a source of a bundle reads on the node of its hub, and stores positions by subscription', async () => {
  const hub = hubOf()
  try {
    const context = { ...fields, stopping: AbortSignal.abort(), hub, subscription, turns }
    const environment = await environmentOf(options(), context, true)
    expect(environment).toMatchObject({ node: 'node-2', isManaged: true, tailing: { componentId: 'uid/app' } })
    expect(environment.wantsPod('other_web_uid-1')).toBe(false)
  } finally {
    await hub.close()
  }
})

test('sources that may read the same namespaces share names, and a source that ends takes its names with it', async () => {
  const hub = hubOf()
  try {
    // Aborted, so the source does not wait for the list of pods.
    const context = { ...fields, stopping: AbortSignal.abort(), hub, subscription, turns }
    const one = await environmentOf(options(), context, true)
    const other = await environmentOf(options(), context, true)
    const namesOf = ({ keys }: typeof one, message: string) => {
      const pod = new BytePod('p', false, undefined, new PodByteLane(new CriParser(() => 0), false, keys))
      pod.read([Buffer.from(`2026-11-23T10:11:12.5Z stdout F ${message}`)], (batch) => void batch.lines.enterRead())
      return keys.table(theKernel()).names
    }
    expect(namesOf(one, '{"mine":1}')).toContain('mine')
    expect(namesOf(other, '{"other":1}')).toEqual(expect.arrayContaining(['mine', 'other']))

    await one.run({ run: async () => {} } as Tailer<PodFile>)

    expect(one.keys.plans).toMatchObject({ count: 0, bytes: 0 })
    expect(namesOf(other, '{"other":1}')).toContain('other')
    expect(namesOf(other, '{"other":1}')).not.toContain('mine')
  } finally {
    await hub.close()
  }
})
