// The pictures in the guide match the current output of commands. The test takes them again at 80 columns.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileOf, looks, screensFolder, shots, take } from './screens.ts'

const noTerminals = spawnSync('script', ['--version']).status !== 0
const read = (name: string) => readFileSync(join(screensFolder, name), 'utf8')

test('there is exactly one picture for each command and terminal', () => {
  const pictures = shots.flatMap((shot) => looks.map((look) => fileOf(shot, look)))
  expect(readdirSync(screensFolder).filter((name) => name.endsWith('.svg'))).toEqual(pictures.toSorted())
})

test('a picture without colours contains no colours', () => {
  for (const shot of shots) {
    for (const columns of [80, 120] as const) {
      const [colored, plain] = [true, false].map((color) => read(fileOf(shot, { columns, color })))
      expect(colored).toMatch(/<tspan[^>]* fill=/)
      expect(plain).not.toMatch(/<tspan[^>]* fill=/)
    }
  }
})

const look = { columns: 80, color: true } as const
const [start, ...others] = shots

test.skipIf(noTerminals).each(others)('the picture of `$typed` shows its output', async (shot) => {
  expect(await take(shot, look), 'npm run screens').toBe(read(fileOf(shot, look)))
})

/** The lines of a picture: the header, and the input and output lines of each pod. */
function partsOf(picture: string) {
  const lines = [...picture.matchAll(/<text .*?>(.*)<\/text>/g)].map(([, line = '']) =>
    line.replace(/<[^>]+>/g, ' ').replace(/\d\d:\d\d:\d\d/, 'TIME'),
  )
  const at = lines.findIndex((line) => line.startsWith(' in '))
  const written = lines.slice(at).filter((line) => /payment|request/.test(line))
  const groups = [/^ in .*payment/, /^ in .*request/, /TIME .*payment/, /TIME .*request/].map((group) =>
    written.filter((line) => group.test(line)).map((line) => line.replace(/^ out +/, ' ')),
  )
  return { header: lines.slice(0, at), groups }
}

// On a slow machine, the lines of two pods may arrive in another order.
test.skipIf(noTerminals)(
  'the picture of `npm start` shows its output, with the lines of each pod in order',
  async () => {
    if (start === undefined) throw new Error('there is no such picture')
    const now = partsOf(await take(start, look))
    const then = partsOf(read(fileOf(start, look)))
    expect(now.header.length).toBeGreaterThan(10)
    expect(now.header, 'npm run screens').toEqual(then.header)
    expect(now.groups.flat().length).toBeGreaterThan(8)
    for (const [index, group] of now.groups.entries()) {
      const known = then.groups[index] ?? []
      const shared = Math.min(group.length, known.length)
      expect(group.slice(0, shared), 'npm run screens').toEqual(known.slice(0, shared))
    }
  },
)
