import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Logger } from '../telemetry/logger.ts'
import { KubeApi } from '../testing/kube-api.ts'
import { ApiServerClient } from './client.ts'
import { kubeConfigTarget } from './config.ts'
import { parseServerVersion, reportServerVersion } from './server-version.ts'

test.each([
  [
    { major: '1', minor: '19', gitVersion: 'v1.19.16' },
    { minor: 19, text: 'v1.19.16' },
  ],
  [
    { major: '1', minor: '27+', gitVersion: 'v1.27.3-eks-a5565ad' },
    { minor: 27, text: 'v1.27.3-eks-a5565ad' },
  ],
  [
    { major: '1', minor: '30' },
    { minor: 30, text: 'v1.30' },
  ],
  [{ major: '2', minor: '0', gitVersion: 'v2.0.0' }, undefined],
  [{ major: '1', minor: '', gitVersion: 'v1' }, undefined],
  [{ kind: 'Status', code: 403 }, undefined],
  [undefined, undefined],
])('%j is version %j', (answer, version) => {
  expect(parseServerVersion(answer)).toEqual(version)
})

/** Lines of the log, as level and facts. */
async function reported(prepare: (api: KubeApi) => void): Promise<readonly (readonly [string, object, string])[]> {
  await using api = await KubeApi.start()
  prepare(api)
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-version-'))
  const config = join(folder.path, 'kubeconfig')
  await writeFile(config, api.kubeConfig())
  const lines: (readonly [string, object, string])[] = []
  const line = (level: string) => (facts: object, message: string) => void lines.push([level, facts, message])
  const logger = { debug: line('debug'), info: line('info'), warn: line('warn') } as unknown as Logger
  const client = new ApiServerClient(await kubeConfigTarget(config), 'Penstock/test')
  try {
    await reportServerVersion(client, logger, new AbortController().signal)
  } finally {
    await client.close()
  }
  return lines
}

test('the version of a supported server is logged once', async () => {
  expect(await reported((api) => Object.assign(api, { minor: '19' }))).toEqual([
    ['info', { server_version: 'v1.19.0', min_version: 'v1.19' }, 'Connected to the Kubernetes API server.'],
  ])
})

test('an older server causes a warning with its consequences and a remedy', async () => {
  expect(await reported((api) => Object.assign(api, { minor: '18' }))).toEqual([
    [
      'warn',
      { server_version: 'v1.18.0', min_version: 'v1.19' },
      'The Kubernetes API server is older than the agent supports: metadata and events may be missing. Upgrade the cluster.',
    ],
  ])
})

test('a server that does not report its version to this account causes no warning', async () => {
  const lines = await reported((api) => Object.assign(api, { token: 'another' }))
  expect(lines.map(([level]) => level)).toEqual(['debug'])
})
