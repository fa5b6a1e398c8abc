import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'

const folder = mkdtempSync(join(tmpdir(), 'penstock-convert-other-'))
afterAll(() => rmSync(folder, { recursive: true }))
const main = join(import.meta.dirname, '../main.ts')

test('a Fluent Bit configuration with an included file becomes a ClusterPipeline, and gaps name the file and line', async () => {
  const file = join(folder, 'fluent-bit.conf')
  const more = join(folder, 'outputs.conf')
  writeFileSync(file, '[INPUT]\n    Name tail\n    Path /srv/*.log\n@INCLUDE out*.conf\n')
  writeFileSync(more, '[OUTPUT]\n    Name kafka\n    Match *\n')

  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    '--conditions=source',
    main,
    'convert',
    '-f',
    file,
  ])

  expect(stderr).toContain('Read as a configuration of Fluent Bit')
  expect(parse(stdout)).toMatchObject({
    kind: 'ClusterPipeline',
    spec: { sources: [{ type: 'file' }], sinks: [{ type: 'blackhole' }] },
  })
  expect(stdout).toContain('# GAP: the output `kafka`')
  expect(stderr).toContain(`${more}:1`)
  expect(stderr).toContain('there is no sink for the protocol')
})
