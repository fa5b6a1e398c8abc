import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  developmentRooms,
  developmentViolations,
  importsIn,
  importViolations,
  roomOf,
} from '@penstock/agent/testing/rooms'
import { expect, test } from 'vitest'
import { operatorTable, packageRooms } from './testing/rooms.ts'

const source = import.meta.dirname
const agentSource = join(source, '../../agent/src')

test('a room of the operator imports only from floors above it', () => {
  expect(importViolations(source, operatorTable, packageRooms)).toEqual([])
})

test('a room of the operator that does not ship imports no such room from a floor below its own', () => {
  expect(developmentViolations(source)).toEqual([])
})

test('every folder and file of the operator has a place in the table, and every place is a folder or a file', () => {
  const rooms = new Set(importsIn(source).map(({ file }) => roomOf(file)))
  expect([...rooms].sort()).toEqual(Object.keys(operatorTable).sort())
})

test('the operator imports no tests and no tools of the agent', () => {
  const found = importsIn(source).filter(({ imports }) =>
    developmentRooms.some((room) => imports.startsWith(`@penstock/agent/${room}/`)),
  )
  expect(found).toEqual([])
})

/** Entry points of the agent's package that ship. The others are for tests and tools of a checkout. */
function entryPoints(): string[] {
  const { exports } = JSON.parse(readFileSync(join(agentSource, '../package.json'), 'utf8')) as {
    exports: Record<string, string | Record<string, string>>
  }
  return Object.keys(exports).filter((name) => name !== './package.json' && !name.includes('*'))
}

test('the operator imports the agent by its entry points', () => {
  const names = entryPoints().map((name) => name.replace('.', '@penstock/agent'))
  const found = importsIn(source).filter(({ imports }) => imports.startsWith('@penstock/agent'))
  expect(found.length).toBeGreaterThan(100)
  expect(found.filter(({ imports }) => !names.includes(imports))).toEqual([])
  // A path around the package's exports.
  expect(importsIn(source, []).filter(({ imports }) => imports.includes('agent/src/'))).toEqual([])
})

test('the agent has at most a dozen entry points, and each begins with its purpose', () => {
  const names = entryPoints()
  expect(names.length).toBeLessThanOrEqual(12)
  const faces = names.map((name) => join(agentSource, 'face', `${name.slice(2)}.ts`)).filter((path) => existsSync(path))
  expect(readdirSync(join(agentSource, 'face')).length).toBe(faces.length)
  for (const path of faces) expect(readFileSync(path, 'utf8')).toMatch(/^\/\/ .+\./)
})

test('the agent never imports the operator', () => {
  const found = importsIn(agentSource, []).filter(
    ({ imports }) => imports.startsWith('../../operator/') || imports.startsWith('@penstock/operator'),
  )
  expect(found).toEqual([])
})
