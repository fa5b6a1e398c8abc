// The cluster scripts: nodes share no files, and `down` removes exactly what `up` created.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { command, node, until } from '../command.ts'
import { missingForCluster, startCluster } from './cluster.ts'

const missing = missingForCluster(2)

describe.skipIf(missing !== undefined)(`two nodes${missing === undefined ? '' : ` (${missing})`}`, () => {
  test("files that pods write to a node's disk do not appear on the other node or on this machine", async () => {
    const name = `written-${randomUUID()}`
    const folders = ['/var/lib/penstock', '/var/lib/elsewhere', '/var/log/penstock']
    const cluster = await startCluster({ nodes: 2 })
    const { folder } = cluster
    try {
      for (const number of ['node-1', 'node-2']) {
        const outside = (await readFile(join(folder, 'run', `${number}.pid`), 'utf8')).trim()
        const first = (await command('pgrep', ['--parent', outside])).trim()
        const inside = (...args: string[]) => command('nsenter', ['--target', first, '--mount', ...args])
        for (const place of folders) {
          await inside('mkdir', '-p', place)
          // Fails if the other node's file exists.
          await inside('sh', '-c', `set -C; echo ${number} >${place}/${name}`)
          expect(await readFile(join(folder, number, place, name), 'utf8')).toBe(`${number}\n`)
          expect(existsSync(join(place, name))).toBe(false)
        }
      }
    } finally {
      await cluster[Symbol.asyncDispose]()
    }
    expect(existsSync(folder)).toBe(false)
  })
})

describe.skipIf(missingForCluster(0) !== undefined)('up', () => {
  test('ends with its parent process while it waits for another cluster', async () => {
    const state = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'state-'))
    const lock = join(state, 'lock')
    const up = join(import.meta.dirname, 'up.sh')
    const other = spawn('flock', [lock, 'sh', '-c', 'echo held; read -r line'], { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(other.stdout, 'data')
    // The shell prints the id of the process that it starts, and ends when it reads a line.
    const bin = process.env['CLUSTER_BIN'] ?? process.env['KUBEBUILDER_ASSETS'] ?? ''
    const starter = spawn('sh', ['-c', `${up} & echo $!; read -r line`], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        ...process.env,
        ...(bin === '' ? {} : { CLUSTER_BIN: bin }),
        CLUSTER_DIR: join(state, 'cluster'),
        CLUSTER_NODES: '1',
        CLUSTER_LOCK: lock,
      },
    })
    const [printed] = await once(starter.stdout, 'data')
    const pid = Number(String(printed))
    const running = () => existsSync(`/proc/${pid}`)
    try {
      await once(starter.stderr, 'data') // the message that it waits
      expect(running()).toBe(true)
      starter.stdin.end('\n')
      await until('it to end', 30_000, async () => !running())
      expect(existsSync(join(state, 'cluster/run/etcd.pid'))).toBe(false)
    } finally {
      if (running()) process.kill(pid, 'SIGKILL') // before the lock is free, so that it starts no cluster
      other.stdin.end('\n')
      await once(other, 'close')
      await rm(state, { recursive: true, force: true })
    }
  })
})

describe('down', () => {
  const down = async (state: string, kubeconfig: string) => {
    const args = ['--conditions=source', join(import.meta.dirname, 'cluster.ts'), 'down']
    await command(node, args, { env: { CLUSTER_DIR: state, KUBECONFIG: kubeconfig } })
  }

  test.each([
    { kubeconfig: 'pki/admin.kubeconfig', left: false, whose: 'of the cluster that it stops' },
    { kubeconfig: 'pki/another.kubeconfig', left: true, whose: 'of another cluster' },
  ])('with KUBECONFIG $whose, leaves state: $left', async ({ kubeconfig, left }) => {
    const state = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'state-'))
    try {
      await mkdir(join(state, 'pki'))
      await writeFile(join(state, kubeconfig), '')

      await down(state, join(state, kubeconfig))

      expect(existsSync(state)).toBe(left)
    } finally {
      await rm(state, { recursive: true, force: true })
    }
  })
})
