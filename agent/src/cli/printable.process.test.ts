// Runs each command with arguments and files that contain terminal control characters: none of them reaches the output.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { commands } from './commands.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-printable-'))
afterAll(() => rmSync(folder, { recursive: true }))

const hostile = 'x\u001b]0;pwn\u0007\u001b[8m\u009b31m\u202e'
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters
const obeyed = /\u0007|\u001b|\u009b|\u202e/
const config = join(folder, 'config.yaml')
writeFileSync(config, JSON.stringify({ sources: { in: { type: hostile, [hostile]: hostile } }, sinks: {} }))

test.each(Object.keys(commands).filter((name) => name !== 'run'))('%s', (name) => {
  for (const args of [[hostile], [`--${hostile}`], [config], ['--config-yaml', config]]) {
    const { stdout, stderr } = spawnSync(process.execPath, ['--conditions=source', main, name, ...args], {
      encoding: 'utf8',
      input: `${hostile}\n`,
      timeout: 60_000,
    })
    expect(`${stdout}${stderr}`).not.toMatch(obeyed)
  }
})
