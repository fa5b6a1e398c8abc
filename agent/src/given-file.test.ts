import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { GivenFileError, parseSecretJson, protectFolder, readGivenFile, readGivenFileAsync } from './given-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-given-'))
afterAll(() => rmSync(folder, { recursive: true }))

const fifo = join(folder, 'fifo')
execFileSync('mkfifo', [fifo])
writeFileSync(join(folder, 'words'), 'some words')
symlinkSync(join(folder, 'words'), join(folder, 'link'))

// As kubelet mounts a Secret: names that lead to a folder that leads to a folder of the newest values.
const secrets = join(folder, 'secrets')
mkdirSync(join(secrets, '..2026_01_01'), { recursive: true })
writeFileSync(join(secrets, '..2026_01_01', 'key'), 'hunter2')
symlinkSync('..2026_01_01', join(secrets, '..data'))
symlinkSync('..data/key', join(secrets, 'key'))
symlinkSync(join(secrets, 'key'), join(folder, 'elsewhere'))
symlinkSync(secrets, join(folder, 'door'))

type Read = (path: string, maxBytes?: number) => Promise<string>
const readers: readonly (readonly [string, Read])[] = [
  ['readGivenFile', async (path, maxBytes) => readGivenFile(given(path, maxBytes)).toString()],
  ['readGivenFileAsync', async (path, maxBytes) => (await readGivenFileAsync(given(path, maxBytes))).toString()],
]

function given(path: string, maxBytes?: number) {
  return { option: 'tls.ca_file', path, ...(maxBytes === undefined ? {} : { maxBytes }) }
}

async function reasonOf(reading: Promise<string>): Promise<string> {
  const error: unknown = await reading.then(
    (text) => text,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof GivenFileError)) throw new TypeError(`no GivenFileError: ${String(error)}`)
  expect(error.message).toBe(
    `\`tls.ca_file\`: cannot read the file ${JSON.stringify(error.file.path)}: ${error.reason}`,
  )
  return error.reason
}

describe.each(readers)('%s', (_name, read) => {
  test('reads a regular file, also through a link', async () => {
    expect(await read(join(folder, 'words'))).toBe('some words')
    expect(await read(join(folder, 'link'))).toBe('some words')
  })

  test.runIf(process.platform === 'linux')('reads a file that reports size 0 but has content', async () => {
    expect(await read('/proc/self/status')).toContain('Pid:')
  })

  test.each([
    [fifo, 'it is a FIFO, not a regular file'],
    [folder, 'it is a folder, not a regular file'],
    ['/dev/zero', 'it is a device, not a regular file'],
    [join(folder, 'missing'), 'no such file or directory'],
    [join(folder, 'words', 'below'), 'a part of its path is not a folder'],
    ['a\0b', 'ERR_INVALID_ARG_VALUE'],
  ])('refuses %j: %s', async (path, reason) => {
    expect(await reasonOf(read(path))).toBe(reason)
  })

  test('counts the bytes it reads against the limit', async () => {
    expect(await read(join(folder, 'words'), 10)).toBe('some words')
    expect(await reasonOf(read(join(folder, 'words'), 9))).toBe('it has more than 9 bytes')
    if (process.platform === 'linux') {
      expect(await reasonOf(read('/proc/self/status', 9))).toBe('it has more than 9 bytes')
    }
  })

  test.each([
    'secrets/key',
    'secrets/..data/key',
    'secrets/..2026_01_01/key',
    'elsewhere',
    'door/key',
    'secrets/../secrets/key',
  ])('does not read %s while the folder of secrets is protected', async (path) => {
    expect(await read(join(folder, path))).toBe('hunter2')
    {
      using _door = protectFolder(join(folder, 'door'))
      using _folder = protectFolder(secrets)
      const reason = await reasonOf(read(join(folder, path)))
      expect(reason).toBe('it is in the folder of secret values, which options and programs must not read')
      expect(await read(join(folder, 'words'))).toBe('some words')
    }
    expect(await read(join(folder, path))).toBe('hunter2')
  })
})

test('does not quote invalid JSON', () => {
  for (const text of ['hunter2', '"hunter2', '{"a": hunter2}']) {
    expect(() => parseSecretJson(text)).toThrow(/^it is not valid JSON$/)
  }
})
