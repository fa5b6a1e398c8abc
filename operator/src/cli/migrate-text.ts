// Replaces the `apiVersion` of Penstock's resources in a text with the newest one. Only these characters change, so the comments,
// order and layout of the file stay.

import { positionAt, readYamlDocuments } from '@penstock/agent/config'
import type { Problem } from '@penstock/agent/errors'
import { isMap, isScalar, isSeq } from 'yaml'
import { kindOf } from '../api/kinds.ts'
import { apiVersions } from '../api/object.ts'

const [newest = ''] = apiVersions

/** @param file names the text in problems */
export function migrateText(
  file: string,
  text: string,
): { readonly text: string; readonly count: number; readonly problems: readonly Problem[] } {
  const { documents, lines, problem } = readYamlDocuments(text)
  const problems: Problem[] = []
  const report = (line: number, column: number, message: string) => {
    problems.push({ severity: 'error', path: '', file, line, column, message })
  }
  if (problem !== undefined) {
    const { line, column } = positionAt(text, problem.offset)
    report(line, column, problem.message)
  }
  const places: (readonly [start: number, end: number])[] = []
  for (const { document, problems: found } of documents) {
    for (const { offset, message } of found) {
      const { line, col } = lines.linePos(offset)
      report(line, col, message)
    }
    if (found.length > 0) continue
    // The items of a `List` are resources.
    const items = isMap(document.contents) ? document.contents.get('items', true) : undefined
    for (const node of [document.contents, ...(isSeq(items) ? items.items : [])]) {
      if (!isMap(node) || kindOf(String(node.get('kind'))) === undefined) continue
      const version = node.get('apiVersion', true)
      if (!isScalar(version) || version.value === newest || !apiVersions.includes(String(version.value))) continue
      const [start, end] = version.range ?? [0, 0]
      places.push([start, end])
    }
  }
  let migrated = ''
  let from = 0
  for (const [start, end] of places) {
    // The value may be quoted in the text.
    const value = text.slice(start, end).replace(/penstock\.dev\/\w+/, newest)
    migrated += text.slice(from, start) + value
    from = end
  }
  return { text: migrated + text.slice(from), count: places.length, problems }
}
