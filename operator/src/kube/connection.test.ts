import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { KubeConnection } from './connection.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'penstock-home-'))
  vi.stubEnv('HOME', home)
  vi.stubEnv('KUBECONFIG', undefined)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(home, { recursive: true })
})

test('where no cluster is known, it is said where was looked', async () => {
  await expect(KubeConnection.open({})).rejects.toThrow('No cluster is known here: KUBECONFIG is not set')
})

test('a kubeconfig that is not there is named', async () => {
  await expect(KubeConnection.open({ kubeconfig: join(home, 'none') })).rejects.toThrow(
    `The kubeconfig ${join(home, 'none')}`,
  )
})
