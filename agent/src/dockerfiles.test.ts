// The Dockerfiles of both programs state some instructions twice, because Docker has no way to share them: they must be the same.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const textOf = (name: 'agent' | 'operator') =>
  readFileSync(new URL(`../../${name}/Dockerfile`, import.meta.url), 'utf8').replaceAll('\\\n', ' ')

/** The instructions of a stage, without comments; the program's own name is `PROGRAM`. */
function stageOf(name: 'agent' | 'operator', stage: RegExp): string[] {
  const lines = textOf(name)
    .replaceAll(name, 'PROGRAM')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const begin = lines.findIndex((line) => stage.test(line))
  const length = lines.slice(begin + 1).findIndex((line) => line.startsWith('FROM '))
  return lines.slice(begin, length < 0 ? undefined : begin + 1 + length)
}

const entryOf = (name: 'agent' | 'operator') =>
  JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(textOf(name))?.[1] ?? '[]') as string[]

test('the stage that collects Node is the same but for the data folder of the agent', () => {
  const collect = 'node /tmp/image-files.ts /image'
  for (const name of ['agent', 'operator'] as const) {
    const [from, copy, run = ''] = stageOf(name, /AS node$/)
    expect([from, copy]).toEqual([
      expect.stringMatching(/^FROM \S+ AS node$/),
      `COPY ${name === 'agent' ? 'PROGRAM' : 'agent'}/src/tools/image-files.ts /tmp/`,
    ])
    expect(run).toContain(collect)
  }
})

test('the last stage is the same but for the environment and the flags of Node', () => {
  const common = (name: 'agent' | 'operator') =>
    stageOf(name, /^FROM scratch/)
      .filter((line) => !line.startsWith('ENTRYPOINT') && !line.startsWith('ENV MALLOC'))
      .map((line) => line.replace('--from=compiled', '--from=build').replace(' NODE_COMPILE_CACHE=/app/compiled', ''))
  expect(common('agent')).toEqual(common('operator'))
  expect(common('agent')).toContain('USER 65532:65532')
  for (const name of ['agent', 'operator'] as const) {
    expect(entryOf(name)[0]).toBe('/usr/local/bin/node')
    expect(entryOf(name).at(-1)).toBe(`/app/${name}/packed/main.js`)
  }
})

test('the start whose compiled code is kept has the flags of the image: Node takes no other code', () => {
  const [, command] = /compiled-start\.ts \/app\/compiled\s+(.*)$/m.exec(textOf('agent')) ?? []
  expect(command?.split(' ')).toEqual(entryOf('agent'))
})
