import { expect, test } from 'vitest'
import { type Field, rowFormats, rowsText, rowText } from './rows.ts'

interface Pod {
  readonly name: string
  readonly ready: boolean
  readonly labels?: readonly string[]
}

const fields: readonly Field<Pod>[] = [
  { name: 'name', column: 'NAME', value: ({ name }) => name },
  { name: 'labels', column: 'LABELS', value: ({ labels }) => labels },
  { name: 'ready', column: 'READY', value: ({ ready }) => ready, cell: ({ ready }) => (ready ? '1/1' : '0/1') },
  { name: 'uid', value: ({ name }) => `uid of ${name}` },
]
const pods: readonly Pod[] = [
  { name: 'wéb', ready: true, labels: ['a=b', 'c=d'] },
  { name: 'payments\n\t1', ready: false },
]

test('a table has a line for each row, and columns under their headings', () => {
  expect(rowsText(fields, pods, 'table').split('\n')).toEqual([
    'NAME         LABELS     READY',
    'wéb          a=b, c=d   1/1',
    'payments 1   -          0/1',
    '',
  ])
  expect(rowsText(fields, [], 'table')).toBe('NAME   LABELS   READY\n')
})

test('JSON and YAML contain all fields that have a value', () => {
  expect(JSON.parse(rowsText(fields, pods, 'json'))).toEqual([
    { name: 'wéb', labels: ['a=b', 'c=d'], ready: true, uid: 'uid of wéb' },
    { name: 'payments\n\t1', ready: false, uid: 'uid of payments\n\t1' },
  ])
  expect(rowsText(fields, pods.slice(0, 1), 'yaml')).toBe(
    '- name: wéb\n  labels:\n    - a=b\n    - c=d\n  ready: true\n  uid: uid of wéb\n',
  )
})

test.each(rowFormats)('a row requested by name is not a list in %s', (format) => {
  const [pod] = pods as [Pod]
  expect(rowText(fields, pod, format)).toBe(
    {
      table: rowsText(fields, [pod], 'table'),
      json: '{\n  "name": "wéb",\n  "labels": [\n    "a=b",\n    "c=d"\n  ],\n  "ready": true,\n  "uid": "uid of wéb"\n}\n',
      yaml: 'name: wéb\nlabels:\n  - a=b\n  - c=d\nready: true\nuid: uid of wéb\n',
    }[format],
  )
})
