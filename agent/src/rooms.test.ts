import { globSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { expect, test } from 'vitest'
import { agentTable } from './testing/agent-rooms.ts'
import { developmentViolations, importsIn, importViolations, roomOf } from './testing/rooms.ts'

const source = import.meta.dirname

test('a room of the agent imports only from floors above it', () => {
  expect(importViolations(source, agentTable)).toEqual([])
})

test('a room that does not ship imports no such room from a floor below its own', () => {
  expect(developmentViolations(source)).toEqual([])
})

test('every folder and file of the agent has a place in the table, and every place is a folder or a file', () => {
  const rooms = new Set(
    importsIn(source).flatMap(({ file, imports, isPackage }) =>
      isPackage ? [roomOf(file)] : [roomOf(file), roomOf(imports)],
    ),
  )
  expect([...rooms].sort()).toEqual(Object.keys(agentTable).sort())
})

/** `sinks/http.ts` and the files in `sinks/http/` are one component. */
const componentOf = (path: string) => path.split(sep).slice(0, 2).join('/').replace(/\.ts$/, '')
const kinds = ['sources', 'transforms', 'sinks']

test('a component imports no other component', () => {
  const components = new Set(
    importsIn(source)
      .filter(({ file }) => roomOf(file) === 'registry')
      .map(({ imports }) => componentOf(imports))
      .filter((component) => kinds.includes(component.split('/')[0] as string)),
  )
  const found = importsIn(source).filter(
    ({ file, imports }) =>
      kinds.includes(roomOf(file)) &&
      components.has(componentOf(imports)) &&
      componentOf(imports) !== componentOf(file),
  )
  expect(found.map(({ file, imports }) => `${file} imports ${imports}`)).toEqual([])
})

test('no test replaces a module: parts that tests replace are arguments', () => {
  const root = join(source, '../..')
  const files = globSync(['agent/src/**/*.ts', 'operator/src/**/*.ts', 'e2e/**/*.ts'], { cwd: root })
  expect(files.length).toBeGreaterThan(0)
  const replacing = files.filter((file) =>
    /\bvi\s*\.\s*(?:mock|doMock|hoisted)\(/.test(readFileSync(join(root, file), 'utf8')),
  )
  expect(replacing).toEqual([])
})
