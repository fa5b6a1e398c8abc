import { join } from 'node:path'
import { developmentRooms, importsIn, importViolations, roomOf } from '@penstock/agent/testing/rooms'
import { expect, test } from 'vitest'
import { operatorTable, packageRooms } from './testing/rooms.ts'

const source = import.meta.dirname
const agentSource = join(source, '../../agent/src')

test('a room of the operator imports from the floors above it and from no other', () => {
  expect(importViolations(source, operatorTable, packageRooms)).toEqual([])
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

test('the agent never imports the operator', () => {
  const found = importsIn(agentSource, []).filter(
    ({ imports }) => imports.startsWith('../../operator/') || imports.startsWith('@penstock/operator'),
  )
  expect(found).toEqual([])
})
