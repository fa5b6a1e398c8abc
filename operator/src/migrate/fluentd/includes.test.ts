// `@include` within an element: the lines of the file replace it, and have no meaning elsewhere.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const main = `<source>
  @type tail
  path /srv/app.log
  tag app
  @include PATH
</source>
<match **>
  @type stdout
</match>
`
const parse = '<parse>\n  @type regexp\n  expression /^(?<level>\\w+) (?<text>.*)$/\n  unknown 1\n</parse>\n'
const options = 'read_from_head true\n@include parse.conf\n'

const convert = (path: string, files: Readonly<Record<string, string>>) => {
  const given = Object.entries({ ...files, 'main.conf': main.replace('PATH', path) }).map(([file, text]) => ({
    file,
    text,
  }))
  return converted(
    (all, _, draft) => convertFluentd(all, (name) => given.filter(({ file }) => file === name), draft),
    given,
  )
}

test.each([
  { about: 'elements', path: 'parse.conf', files: { 'parse.conf': parse } },
  { about: 'parameters and another file', path: 'a.conf', files: { 'a.conf': options, 'parse.conf': parse } },
])('a file with $about replaces its include', async ({ path, files }) => {
  const { document, resource, gaps } = convert(path, files)
  expect(gaps).toMatchObject([{ file: 'parse.conf', line: 4, subject: 'tail: parse.unknown' }])
  expect(resource.spec.sources[0].config.read_from).toBe(path === 'a.conf' ? 'beginning' : 'end')
  expect(String(document)).toContain('(?<level>')
  expect(await lint(String(document))).toEqual([])
})

test('a missing file is a gap, and a file that includes itself causes no endless loop', () => {
  expect(convert('no.conf', {}).gaps).toMatchObject([{ file: 'main.conf', line: 5, subject: '@include no.conf' }])
  expect(convert('a.conf', { 'a.conf': '@include a.conf\n' }).gaps).toEqual([])
})
