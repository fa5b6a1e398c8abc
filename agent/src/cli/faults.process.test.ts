// Errors around a command are reported in a sentence; `--debug` adds a stack.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-faults-'))
afterAll(() => rmSync(folder, { recursive: true }))

function agent(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['--conditions=source', main, ...args], (error, out, err) =>
      resolve({ code: Number(error?.code ?? 0), out, err }),
    )
  })
}

test.each(['top', 'tap'])('%s says that another server is no agent', async (command) => {
  await using server = createServer((_, response) => response.end('<html>\n')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const { code, err } = await agent(command, '--url', url)

  expect([code, err]).toEqual([
    69,
    `${url} is no Penstock agent: it answered something that is not JSON. (PEN_UNAVAILABLE)\n`,
  ])
})

test('the page of another server for an unknown path is not shown', async () => {
  await using server = createServer((_, response) => response.writeHead(404).end('<html>\n<body>lost</body>\n'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const { code, err } = await agent('top', '--url', url)

  expect([code, err]).toEqual([
    69,
    `${url} is no Penstock agent: it answered /v1/components with 404. (PEN_UNAVAILABLE)\n`,
  ])
})

test('a stack is shown with --debug alone', async () => {
  const loop = join(folder, 'loop.yaml')
  symlinkSync(loop, loop)
  const plain = await agent('validate', loop)
  expect(plain.code).not.toBe(0)
  expect(plain.out + plain.err).toContain('ELOOP')
  expect(plain.err).not.toContain('    at ')
  expect((await agent('validate', loop, '--debug')).err).toContain('    at ')
})
