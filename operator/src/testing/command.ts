// Runs the real command against fakes of the API server and the operator, and captures its output and exit code.

import { spawn } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

/** A response of the fake server. */
export interface ApiAnswer {
  readonly status: number
  readonly body: object
}

export interface CommandRun {
  readonly code: number | null
  /** Standard output and standard error, in order of arrival. */
  readonly output: string
}

export const forbidden: ApiAnswer = {
  status: 403,
  body: { kind: 'Status', reason: 'Forbidden', message: 'no', code: 403 },
}

export const notFound = (message: string): ApiAnswer => ({
  status: 404,
  body: { kind: 'Status', reason: 'NotFound', message, code: 404 },
})

/**
 * Runs `penstock` with a kubeconfig of the fake server.
 * @param argsAt the arguments without `--kubeconfig`; they may name files in the folder
 * @param namespace the namespace of the kubeconfig
 * @param heard receives all output so far, and can end the command
 */
export async function runAtDouble(
  argsAt: (place: { readonly url: string; readonly folder: string }) => Promise<readonly string[]> | readonly string[],
  answer: (url: URL, request: IncomingMessage) => ApiAnswer,
  { namespace, heard }: { namespace?: string; heard?: (output: string, end: () => void) => void } = {},
): Promise<CommandRun> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-command-'))
  const server = createServer((request, response) => {
    request.resume()
    const { status, body } = answer(new URL(request.url ?? '/', 'http://cluster'), request)
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify(body)}\n`)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const kubeconfig = join(folder.path, 'kubeconfig')
  const config = {
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one', namespace } }],
    clusters: [{ name: 'one', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'one', user: { token: 'secret' } }],
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  const args = await argsAt({ url, folder: folder.path })
  const command = spawn(process.execPath, ['--conditions=source', main, ...args, '--kubeconfig', kubeconfig])
  let output = ''
  const hear = (text: Buffer) => {
    output += text
    heard?.(output, () => command.kill('SIGTERM'))
  }
  command.stdout.on('data', hear)
  command.stderr.on('data', hear)
  try {
    const code = await new Promise<number | null>((done) => command.on('close', done))
    return { code, output }
  } finally {
    command.kill('SIGKILL')
    server.close()
    server.closeAllConnections()
  }
}
