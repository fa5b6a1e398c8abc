// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Matches that pass events on: to stores in turn, along routes, to the output of a template, and with a shorter tag.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const time = '2026-11-24T10:11:12Z'
const source = () =>
  '<source>\n  @type tail\n  path /srv/app.log\n  tag raw.app\n  <parse>\n    @type json\n  </parse>\n</source>\n'
const convert = (text: string) => converted(convertFluentd, [{ file: 'fluent.conf', text }])
const missing = (gaps: readonly { isReplaced?: true }[]) => gaps.filter(({ isReplaced }) => isReplaced !== true)

test.each([
  [0, 'a', undefined],
  [1, 'a', 'x'],
])('a store with the weight %s', async (weight, name, expected) => {
  const store = (id: string, share: number) =>
    `  <store>\n    @type http\n    @id ${id}\n    endpoint http://${id}/\n    weight ${share}\n  </store>\n`
  const output = `<match **>\n  @type roundrobin\n${store('a', weight)}${store('b', 1 - weight)}</match>\n`
  const { document, resource, gaps } = convert(`${source()}${output}`)
  expect(missing(gaps)).toEqual([])
  expect(gaps).toMatchObject([{ subject: 'roundrobin', isReplaced: true }])
  expect(resource.spec.sinks).toHaveLength(2)
  const sinks = resource.spec.sinks.filter((sink: { readonly name: string }) => sink.name === name)
  const event = { message: '{"a":"x"}', timestamp: time }
  withTest(document, { spec: { ...resource.spec, sinks } }, event, expected === undefined ? undefined : { a: expected })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a tag from the record loses its prefix behind detect_exceptions', async () => {
  const rewrite =
    '<match raw.app>\n  @type rewrite_tag_filter\n  <rule>\n    key a\n    pattern ^(.*)$\n    tag early.$1\n  </rule>\n</match>\n'
  const detect = '<match early.*>\n  @type detect_exceptions\n  remove_tag_prefix early\n</match>\n'
  const ends =
    '<match x>\n  @type http\n  endpoint http://${tag}/\n  <buffer tag>\n  </buffer>\n</match>\n<match **>\n  @type null\n</match>\n'
  const { document, resource } = convert(`${source()}${rewrite}${detect}${ends}`)
  expect(resource.spec.sinks).toMatchObject([{ type: 'http' }, { type: 'blackhole' }])
  withTest(document, resource, { message: '{"a":"x"}', timestamp: time }, { a: 'x' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const sinkOf = (tag: string) =>
  `<match ${tag}>\n  @type http\n  @id ${tag}\n  endpoint http://h/\n  <inject>\n    tag_key t\n  </inject>\n</match>\n`

test.each<[about: string, routes: string, ends: Readonly<Record<string, string | undefined>>]>([
  ['the first route', '<route app>\n</route>\n<route **>\n  @label @X\n</route>', { 'new.app': 'new.app' }],
  [
    'a route that copies',
    '<route app>\n  copy\n</route>\n<route **>\n  add_tag_prefix x\n</route>',
    { 'new.app': 'new.app', 'x.new.app': 'x.new.app' },
  ],
  ['no route', '<route other>\n</route>', { 'new.app': undefined }],
])('route: %s', async (_, routes, ends) => {
  const prefixes = 'remove_tag_prefix raw\n  add_tag_prefix new\n'
  const match = `<match raw.**>\n  @type route\n  ${prefixes}${routes.replace('<route app>', '<route new.app>')}\n</match>\n`
  const sinks = `${Object.keys(ends).map(sinkOf).join('')}<label @X>\n${sinkOf('x')}</label>\n`
  for (const [name, tag] of Object.entries(ends)) {
    const { document, resource } = convert(`${source()}${match}${sinks}`)
    const own = resource.spec.sinks.filter((sink: { readonly name: string }) => sink.name === name.replaceAll('.', '-'))
    expect(own).toHaveLength(tag === undefined ? 0 : 1)
    if (tag === undefined) continue
    const spec = { ...resource.spec, sinks: own }
    withTest(document, { spec }, { message: '{"a":1}', timestamp: time }, { a: 1, t: tag })
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  }
})

test('routes for tags of files', async () => {
  const files = source().replace('/srv/app.log', '/srv/*.log').replace('raw.app', 'raw.*')
  const match =
    '<match raw.**>\n  @type route\n  remove_tag_prefix raw\n  <route srv.a.*>\n    add_tag_prefix one\n  </route>\n  <route **>\n    add_tag_prefix two\n  </route>\n</match>\n'
  const { document, resource, gaps } = convert(
    `${files}${match}${sinkOf('two.**')}<match **>\n  @type null\n</match>\n`,
  )
  expect(missing(gaps)).toEqual([])
  const event = { message: '{"a":1}', file: '/srv/b.log', timestamp: time }
  const sinks = resource.spec.sinks.filter(({ type }: { readonly type: string }) => type === 'http')
  withTest(document, { spec: { ...resource.spec, sinks } }, event, { a: 1, t: 'two.srv.b.log' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('forest: the sink of the template, for each tag', async () => {
  const match = `<match raw.**>
  @type forest
  subtype http
  remove_prefix raw
  <template>
    endpoint http://__TAG__/\${tag_parts[0]}
    <inject>
      tag_key t
    </inject>
  </template>
</match>
`
  const { document, resource, gaps } = convert(`${source()}${match}`)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks).toMatchObject([{ type: 'http', config: { uri: 'http://app/app' } }])
  withTest(document, resource, { message: '{"a":1}', timestamp: time }, { a: 1, t: 'app' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('forest: options for some tags are gaps', () => {
  const match = '<match raw.**>\n  @type forest\n  subtype null\n  <case raw.x>\n    a b\n  </case>\n</match>\n'
  const { gaps } = convert(`${source()}${match}`)
  expect(missing(gaps)).toMatchObject([{ subject: 'forest: case' }, { subject: 'forest: case.a' }])
})

test.each([
  ['path /srv/x', '/srv/x.%Y%m%d.log'],
  ['path /srv/x.*.txt', '/srv/x.%Y%m%d.txt'],
  ['path /srv/x.log', '/srv/x.%Y%m%d.log'],
  ['path /srv/x-%Y\n  path_suffix .txt', '/srv/x-%Y.txt'],
  ['path /srv/x-%Y.txt\n  add_path_suffix false', '/srv/x-%Y.txt'],
  ['path /srv/x\n  time_slice_format %Y%m%d%H', '/srv/x.%Y%m%d%H.log'],
  ['path /srv/x\n  <buffer time>\n    timekey 1h\n  </buffer>', '/srv/x.%Y%m%d%H.log'],
  ['path /srv/x\n  <buffer time>\n    timekey 1m\n  </buffer>', '/srv/x.%Y%m%d%H%M.log'],
])('a file with %s', (lines, path) => {
  const { resource } = convert(`${source()}<match **>\n  @type file\n  ${lines}\n</match>\n`)
  expect(resource.spec.sinks[0].config.path).toBe(path)
})

test.each(['gz', 'gzip'])('a file with the compression %s', (name) => {
  const { resource } = convert(`${source()}<match **>\n  @type file\n  path /srv/x\n  compress ${name}\n</match>\n`)
  expect(resource.spec.sinks[0].config.compression).toBe('gzip')
})

test('a file with the time and the tag, in the syntax of early versions', async () => {
  const output =
    '<match **>\n  @type file\n  path /srv/x\n  format json\n  include_time_key true\n  time_key at\n  include_tag_key true\n</match>\n'
  const { document, resource, gaps } = convert(`${source()}${output}`)
  expect(missing(gaps)).toEqual([])
  withTest(
    document,
    resource,
    { message: '{"a":1}', timestamp: time },
    { a: 1, at: '2026-11-24T10:11:12Z', tag: 'raw.app' },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('events that bring their tags reach the matches of these tags', async () => {
  const text = `<source>\n  @type forward\n</source>\n${sinkOf('raw.app')}${sinkOf('**')}`
  const { document, resource, gaps } = convert(text)
  expect(gaps).toMatchObject([{ subject: 'source forward' }])
  expect(resource.spec.sinks).toMatchObject([{ name: 'raw-app' }, { name: 'component' }])
  expect(document.toString()).toContain('`%tag`')
  const [{ name: entry }] = resource.spec.transforms
  document.addIn(
    ['spec', 'transforms'],
    document.createNode({
      name: 'tag',
      type: 'remap',
      inputs: ['forward-source'],
      config: { source: '%tag = "raw.app"' },
    }),
  )
  document.setIn(['spec', 'transforms', 0, 'inputs'], ['tag'])
  withTest(document, resource, { a: 1 }, { a: 1, t: 'raw.app' }, 'tag')
  expect(entry).toBe('raw-app-tag')
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('records of other files get no metadata of pods', async () => {
  const filter = '<filter **>\n  @type kubernetes_metadata\n</filter>\n'
  const { document, resource } = convert(`${source()}${filter}${sinkOf('raw.app')}`)
  withTest(
    document,
    resource,
    { message: '{"a":1}', timestamp: time },
    { 'kubernetes == null && .docker == null && .a': 1 },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a match that no events reach is reported, also if it passes events on', () => {
  const match = '<match other>\n  @type copy\n  <store>\n    @type stdout\n  </store>\n</match>\n'
  const { gaps } = convert(`${source()}${match}${sinkOf('raw.app')}`)
  expect(missing(gaps)).toMatchObject([{ subject: 'match other', line: 9 }])
})
