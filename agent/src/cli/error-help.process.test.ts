// Every error example produces the error on whose page it appears.

import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { exitCodeOf } from '../command-line/exit-codes.ts'
import { type ErrorCode, PenstockError } from '../errors.ts'
import { makeCertificates } from '../testing/certificates.ts'
import { errorHelp } from './error-help.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-errors-'))
writeFileSync(
  join(folder, 'penstock-agent'),
  `#!/bin/sh\nexec '${process.execPath}' --conditions=source '${main}' "$@"\n`,
  { mode: 0o755 },
)
afterAll(() => rmSync(folder, { recursive: true }))
const certificates = await makeCertificates()
afterAll(() => certificates[Symbol.asyncDispose]())

const examples = Object.entries(errorHelp).flatMap(([code, { example }]) =>
  example === undefined ? [] : [{ code: code as ErrorCode, ...example }],
)

/** Runs a command; returns the output of both streams, and the exit code. */
async function typed(command: string, cwd: string) {
  const { FORCE_COLOR: _, ...rest } = process.env
  const env = { ...rest, PATH: `${folder}:${process.env['PATH']}` }
  const shell = spawn('sh', ['-c', command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk
    })
  const { promise, resolve } = Promise.withResolvers<number | null>()
  shell.on('close', resolve)
  return { status: await promise, printed }
}

test.each(examples)('$command gets $code', async ({ code, files = {}, config, command, says }) => {
  const place = mkdtempSync(join(folder, 'example-'))
  for (const [name, content] of Object.entries(files)) {
    if (content === 'CERTIFICATE') cpSync(certificates.ca.crt, join(place, name))
    else writeFileSync(join(place, name), content)
  }
  if (config !== undefined) writeFileSync(join(place, 'agent.yaml'), config)
  const { status, printed } = await typed(command, place)
  expect(printed).toContain(says)
  // The log names the page; problems of a configuration show their places instead.
  const isListed = /^error: /m.test(printed)
  // Here the failed request is the cause of a failed check.
  const shown = code === 'PEN_REQUEST_FAILED' ? 'PEN_HEALTHCHECK' : code
  if (!isListed && code !== 'PEN_USAGE')
    expect(printed).toMatch(new RegExp(`\\(${shown}\\)$|error_code=${shown}$`, 'm'))
  if (/^penstock-agent (?!--config)/.test(command)) expect(status).toBe(exitCodeOf(new PenstockError(code, '')))
  else expect(status).not.toBe(0)
})
