// A type has one meaning, so two types of what ships have two names: a search for a name finds one idea.

import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { developmentRooms, roomOf } from '@penstock/agent/testing/rooms'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

/** The files that ship. Each folder of `migrate` uses the words of the program whose configurations it reads. */
function shipped(workspace: string): string[] {
  const folder = `${workspace}/src`
  return globSync('**/*.ts', { cwd: resolve(root, folder) })
    .filter((path) => !/\.(?:test|as)\.ts$/.test(path))
    .filter((path) => ![...developmentRooms, 'migrate'].includes(roomOf(path)))
    .map((path) => `${folder}/${path}`)
}

test('every exported type or class has a name of its own', () => {
  const files = [...shipped('agent'), ...shipped('operator')]
  const declared = new Map<string, string[]>()
  for (const file of files) {
    const source = readFileSync(resolve(root, file), 'utf8')
    for (const [, name = ''] of source.matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm))
      declared.set(name, [...(declared.get(name) ?? []), file])
  }
  expect(files.length).toBeGreaterThan(700)
  expect(declared.size).toBeGreaterThan(900)
  expect([...declared].filter(([, places]) => places.length > 1)).toEqual([])
})
