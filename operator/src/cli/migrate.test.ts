// The command with a double of the API server that records the writes, and with files.

import { createHash } from 'node:crypto'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { main } from './commands.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

async function penstock(...args: string[]) {
  let output = ''
  for (const method of ['log', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((text) => {
      output += `${text}\n`
    })
  }
  const code = await main(args)
  vi.restoreAllMocks()
  return { code, output }
}

const hashOf = (text: string) => createHash('sha256').update(text).digest().subarray(0, 8).toString('base64')

interface Facts {
  /** `storedVersions` of Pipelines; other kinds only list the storage version. */
  readonly stored: readonly string[]
  /** Response codes for writes, by the last part of the path. */
  readonly refusals?: Readonly<Record<string, number>>
  readonly isInstalled?: boolean
}

/** Runs `penstock migrate` with Pipelines stored as v1beta1; returns each write with its body. */
async function migrate(flags: readonly string[], { stored, refusals = {}, isInstalled = true }: Facts) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-migrate-'))
  const writes: string[] = []
  let discoveries = 0
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://cluster')
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    const failure = (code: number) =>
      answer(code, { kind: 'Status', reason: code === 404 ? 'NotFound' : 'Conflict', message: `code ${code}`, code })
    const last = pathname.split('/').at(-1) ?? ''
    if (request.method !== 'GET') {
      if (discoveries < 2) writes.push('too early')
      writes.push(`${request.method} ${pathname} ${await new Response(request as never).text()}`)
      const code = refusals[last]
      return code === undefined ? answer(200, {}) : failure(code)
    }
    if (pathname.includes('/customresourcedefinitions/')) {
      if (!isInstalled) return failure(404)
      const versions = ['v1beta1', 'v1alpha1'].map((name) => ({ name, storage: name === 'v1beta1' }))
      const storedVersions = last === 'pipelines.penstock.dev' ? stored : ['v1beta1']
      return answer(200, {
        metadata: { name: last, resourceVersion: '7' },
        spec: { versions },
        status: { storedVersions },
      })
    }
    if (pathname === '/apis/penstock.dev/v1beta1') {
      // The hash is first that of penstock.dev/v1alpha1/Pipeline, because the server needs a moment.
      const storageVersionHash = discoveries++ === 0 ? 'HZYo2v3Vb3k=' : hashOf('penstock.dev/v1beta1/Pipeline')
      return answer(200, { resources: [{ name: 'pipelines/status' }, { name: 'pipelines', storageVersionHash }] })
    }
    const items = ['one', 'two'].map((name) => ({ metadata: { name, namespace: 'shop' } }))
    answer(200, { metadata: {}, items: last === 'pipelines' ? items : [] })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const kubeconfig = join(folder.path, 'kubeconfig')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = {
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    clusters: [{ name: 'one', cluster: { server: url } }],
    users: [{ name: 'one', user: { token: 'secret' } }],
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  try {
    return { ...(await penstock('migrate', '--kubeconfig', kubeconfig, ...flags)), writes }
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

describe('objects of a cluster', () => {
  const both = ['v1alpha1', 'v1beta1']
  const rewritten = ['one', 'two'].map(
    (name) => `PATCH /apis/penstock.dev/v1beta1/namespaces/shop/pipelines/${name} {}`,
  )
  const pruned =
    'PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/pipelines.penstock.dev/status ' +
    '{"metadata":{"resourceVersion":"7"},"status":{"storedVersions":["v1beta1"]}}'

  test.each<{ what: string; flags?: string[]; facts: Facts; code: number; writes: string[]; says: string }>([
    {
      what: 'that are all stored in the current version stay',
      facts: { stored: ['v1beta1'] },
      code: 0,
      writes: [],
      says: 'pipelines.penstock.dev: all objects are stored as v1beta1.',
    },
    {
      what: 'are counted by a dry run',
      flags: ['--dry-run'],
      facts: { stored: both },
      code: 1,
      writes: [],
      says: '2 objects would be rewritten as v1beta1, and v1alpha1 removed from storedVersions.',
    },
    {
      what: 'are written without a change, and then the earlier version is forgotten',
      facts: { stored: both },
      code: 0,
      writes: [...rewritten, pruned],
      says: '2 objects rewritten as v1beta1; v1alpha1 removed from storedVersions.',
    },
    {
      what: 'that are gone meanwhile need nothing',
      facts: { stored: both, refusals: { one: 404 } },
      code: 0,
      writes: [...rewritten, pruned],
      says: '2 objects rewritten',
    },
    {
      what: 'that cannot be written are named, and keep the earlier version listed',
      facts: { stored: both, refusals: { two: 409 } },
      code: 69,
      writes: rewritten,
      says: '1 of 2 objects could not be rewritten, so storedVersions keeps v1alpha1.',
    },
    {
      what: 'of a definition that changes meanwhile keep the earlier version listed',
      facts: { stored: both, refusals: { status: 409 } },
      code: 69,
      writes: [...rewritten, pruned],
      says: 'code 409',
    },
    {
      what: 'of kinds that are not installed',
      facts: { stored: [], isInstalled: false },
      code: 69,
      writes: [],
      says: 'pipelines.penstock.dev is not installed',
    },
  ])('$what', async ({ flags = [], facts, code, writes, says }) => {
    const result = await migrate(flags, facts)
    expect(result.writes).toEqual(writes)
    expect(result.output).toContain(says)
    expect(result.code, result.output).toBe(code)
  })
})

describe('files', () => {
  const alpha =
    'apiVersion: penstock.dev/v1alpha1\nkind: Sink # out\nmetadata: { name: a }\nspec: { type: blackhole }\n'
  const beta = alpha.replace('v1alpha1', 'v1beta1')

  test('are changed in place; a dry run lists them', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-migrate-'))
    const [old, current] = [join(folder.path, 'old.yaml'), join(folder.path, 'current.yaml')]
    await writeFile(old, alpha)
    await writeFile(current, beta)
    expect(await penstock('migrate', '-f', folder.path, '--dry-run')).toEqual({
      code: 1,
      output: `${old}: 1 resource would change\n`,
    })
    expect(await readFile(old, 'utf8')).toBe(alpha)
    expect(await penstock('migrate', '-f', folder.path)).toEqual({ code: 0, output: `${old}: 1 resource changed\n` })
    expect(await readFile(old, 'utf8')).toBe(beta)
    expect(await readFile(current, 'utf8')).toBe(beta)
    expect(await penstock('migrate', '-f', folder.path, '--dry-run')).toMatchObject({ code: 0 })
  })

  test('stay unchanged if one of them cannot be read', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-migrate-'))
    await writeFile(join(folder.path, 'a.yaml'), alpha)
    await writeFile(join(folder.path, 'b.yaml'), 'kind: Sink\nspec: a: b\n')
    const { code, output } = await penstock('migrate', '-f', folder.path)
    expect(code).toBe(78)
    expect(output).toContain('b.yaml:2')
    expect(await readFile(join(folder.path, 'a.yaml'), 'utf8')).toBe(alpha)
  })
})
