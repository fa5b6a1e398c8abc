// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// Inputs and modules in other files.

import { expect, test } from 'vitest'
import { Draft, type NamedText } from '../draft.ts'
import { convertFilebeat } from './convert.ts'

const main = (kind: 'inputs' | 'modules', path: string) =>
  `filebeat.config.${kind}:\n  path: ${path}\noutput.discard: {}\n`
const web = '- type: filestream\n  id: web\n  paths: [/srv/web.log]\n'
const system = '- module: system\n  syslog: { enabled: true }\n'
const off = '- module: system\n  syslog: { enabled: false }\n  auth.enabled: false\n'

function convert(files: readonly NamedText[], beside: readonly NamedText[] = []) {
  const draft = new Draft()
  const asked: string[] = []
  const included = (path: string, from: string) => {
    asked.push(`${path} from ${from}`)
    return beside
  }
  convertFilebeat(files, included, draft)
  const { spec } = draft.document({ name: 'converted' }).toJS() as { spec: { sources: { name: string }[] } }
  return { sources: spec.sources.map(({ name }) => name), gaps: draft.gaps, asked }
}

const indented = (text: string) => text.replace(/^(?=.)/gm, '    ')
const map = (name: string, files: Readonly<Record<string, string>>) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata:\n${Object.entries(files)
    .map(([key, text]) => `  ${key}: |\n${indented(text)}`)
    .join('')}`

test.each([
  {
    about: 'files that are given, too',
    files: [
      { file: 'conf/filebeat.yml', text: main('inputs', '${path.config}/inputs.d/*.yml') },
      { file: 'conf/web.yml', text: web },
    ],
  },
  {
    about: 'another key of the ConfigMap',
    files: [
      { file: 'a.yaml', text: map('a', { 'filebeat.yml': main('inputs', '/etc/inputs.yml'), 'inputs.yml': web }) },
    ],
  },
  {
    about: 'another ConfigMap, beside one with modules',
    files: [
      {
        file: 'a.yaml',
        text: [
          map('main', { 'filebeat.yml': main('inputs', '${path.config}/inputs.d/*.yml') }),
          map('inputs', { 'web.yml': web }),
          map('modules', { 'system.yml': off }),
        ].join('\n---\n'),
      },
    ],
  },
  {
    about: 'values of the chart',
    files: [
      {
        file: 'values.yaml',
        text: `daemonset:\n  filebeatConfig:\n    filebeat.yml: |\n${indented(indented(main('inputs', '/in/*.yml')))}    in.yml: |\n${indented(indented(web))}`,
      },
    ],
  },
])('inputs in $about', ({ files }) => {
  expect(convert(files)).toMatchObject({ sources: ['web'], gaps: [] })
})

test('files beside the configuration are read at their path', () => {
  const files = [{ file: 'conf/filebeat.yml', text: main('inputs', '${path.config}/inputs.d/*.yml') }]
  const { sources, gaps, asked } = convert(files, [{ file: '/x/conf/inputs.d/web.yml', text: `\n${web}  odd: 1\n` }])
  expect(asked).toEqual(['inputs.d/*.yml from conf/filebeat.yml'])
  expect(sources).toEqual(['web'])
  expect(gaps.map(({ file, line, subject }) => `${file}:${line} ${subject}`)).toEqual([
    '/x/conf/inputs.d/web.yml:5 filestream: odd',
  ])
})

test.each([
  { about: 'inputs that are not given', kind: 'inputs', beside: '', gaps: ['filebeat.config', 'inputs'] },
  { about: 'a module', kind: 'modules', beside: system, gaps: ['module system', 'inputs'] },
  { about: 'a module without enabled file sets', kind: 'modules', beside: off, gaps: ['inputs'] },
] as const)('$about', ({ kind, beside, gaps }) => {
  const files = [{ file: 'filebeat.yml', text: main(kind, `./${kind}.d/*.yml`) }]
  const found = convert(files, beside === '' ? [] : [{ file: '/x/a.yml', text: beside }])
  expect(found.gaps.map(({ subject }) => subject)).toEqual(gaps)
})

test('inputs that are turned off need no file', () => {
  const text = 'filebeat.config.inputs: { enabled: false, path: /a.yml }\noutput.discard: {}\n'
  expect(convert([{ file: 'filebeat.yml', text }]).gaps.map(({ subject }) => subject)).toEqual(['inputs'])
})

test.each([
  {
    about: 'with paths',
    module: 'module: nginx, access: { var.paths: [/srv/a*.log] }, error: { enabled: false }',
    read: '`/srv/a*.log`',
  },
  {
    about: 'without paths',
    module: 'module: system, syslog: {}, auth: {}',
    read: 'the defaults of `syslog`, the defaults of `auth`',
  },
  { about: 'without file sets', module: 'module: system', read: 'its defaults' },
])('the row of a module $about names the logs that no source reads', ({ module, read }) => {
  const { gaps } = convert([{ file: 'filebeat.yml', text: `filebeat.modules: [{ ${module} }]\noutput.discard: {}\n` }])
  expect(gaps[0]?.reason).toContain(`no source reads the logs of the module (${read})`)
  expect(gaps[0]?.nearest).toContain('Add a `file` source')
})

test('the source for a module of a template reads its logs', () => {
  const text = `filebeat.autodiscover.providers: [{ type: kubernetes, templates: [{ config: [{ module: nginx }] }] }]\noutput.discard: {}\n`
  const { gaps, sources } = convert([{ file: 'filebeat.yml', text }])
  expect(sources).toEqual(['template-1'])
  expect(gaps.map(({ reason }) => reason)).toEqual(['`convert` does not convert pipelines of modules'])
})

test('modules that are turned off have no row', () => {
  const text = `filebeat.modules: [{ module: nginx, enabled: false }, { module: system, syslog.enabled: false }]\noutput.discard: {}\n`
  expect(convert([{ file: 'filebeat.yml', text }]).gaps.map(({ subject }) => subject)).toEqual(['inputs'])
})
