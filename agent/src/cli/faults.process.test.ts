// Errors outside a command's own work are reported in a sentence; `--debug` adds a stack.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-faults-'))
afterAll(() => rmSync(folder, { recursive: true }))

function node(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, out, err) => resolve({ code: Number(error?.code ?? 0), out, err }))
  })
}

const agent = (...args: readonly string[]) => node('--conditions=source', main, ...args)

test.each(['top', 'tap'])('%s reports that another server is not an agent', async (command) => {
  await using server = createServer((_, response) => response.end('<html>\n')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const { code, err } = await agent(command, '--url', url)

  expect([code, err]).toEqual([69, `${url} is not a Penstock agent: its response is not JSON. (PEN_UNAVAILABLE)\n`])
})

test('the page of another server for an unknown path is not shown', async () => {
  await using server = createServer((_, response) => response.writeHead(404).end('<html>\n<body>lost</body>\n'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const { code, err } = await agent('top', '--url', url)

  expect([code, err]).toEqual([
    69,
    `${url} is not a Penstock agent: it responded to /v1/components with status 404. (PEN_UNAVAILABLE)\n`,
  ])
})

test('a stack is shown only with --debug', async () => {
  const preload = join(folder, 'preload.mjs')
  writeFileSync(
    preload,
    `import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
fs.globSync = () => { throw new TypeError('broken on purpose') }
syncBuiltinESMExports()
`,
  )
  const broken = (...args: readonly string[]) => node('--import', preload, '--conditions=source', main, ...args)

  const pattern = join(folder, '*.yaml')
  const plain = await broken('validate', pattern)
  expect(plain.code).toBe(70)
  expect(plain.err).toContain(
    'Internal error in Penstock: broken on purpose\nRun the command with --debug to print the stack.',
  )
  expect(plain.err).not.toContain('    at ')
  expect((await broken('validate', pattern, '--debug')).err).toContain('    at ')
})
