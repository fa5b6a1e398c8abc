// Records of pods: the effects of the filter `kubernetes`, of its annotations, and of tags.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

const pods = (...lines: string[]) =>
  `[INPUT]\n    Name tail\n    Tag kube.*\n    Path /var/log/containers/*.log\n    multiline.parser docker, cri\n${lines.map((line) => `    ${line}\n`).join('')}`
const section = (kind: string, ...lines: string[]) => `[${kind}]\n${lines.map((line) => `    ${line}\n`).join('')}`
const end = section('OUTPUT', 'Name null', 'Match *')

const pod = (message: string, more: object = {}) => ({
  message,
  stream: 'stderr',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: {
    pod_name: 'web-1',
    pod_namespace: 'shop',
    container_name: 'nginx',
    container_id: 'containerd://abc',
    ...more,
  },
})

interface Case {
  readonly name: string
  readonly text: string
  readonly event: object
  /** A condition on the record before the last sink; undefined if no record must arrive there. */
  readonly assert?: string
  readonly sink?: number
}

async function check({ text, event, assert, sink = -1 }: Case): Promise<void> {
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fluent-bit.conf', text }])
  const at = 'arriving'
  const index = sink < 0 ? resource.spec.sinks.length + sink : sink
  const { inputs } = resource.spec.sinks[index]
  document.addIn(['spec', 'transforms'], { name: at, type: 'remap', inputs, config: { source: '.' } })
  document.setIn(['spec', 'sinks', index, 'inputs'], [at])
  const expected = assert === undefined ? { at, count: 0 } : { at, assert }
  const insertAt = resource.spec.transforms[0].name
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt, input: { log: event }, expect: [expected] }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
}

const exclude = section('FILTER', 'Name kubernetes', 'Match kube.*', 'K8S-Logging.Exclude On')
const excluded = (annotation: string, value = 'true') => pod('x', { pod_annotations: { [annotation]: value } })
const own = section('PARSER', 'Name kv', 'Format regex', 'Regex ^(?<key>\\w+)=(?<value>.*)$')
const parsed = (more: string[] = []) =>
  own +
  pods() +
  section('FILTER', 'Name kubernetes', 'Match kube.*', 'K8S-Logging.Parser On', 'Merge_Log On', ...more) +
  end

test.each<Case>([
  { name: 'a pod without annotations', text: pods() + exclude + end, event: pod('x'), assert: '.log == "x"' },
  { name: 'an excluded pod', text: pods() + exclude + end, event: excluded('fluentbit.io/exclude') },
  { name: 'another word for true', text: pods() + exclude + end, event: excluded('fluentbit.io/exclude', 'On') },
  { name: 'an excluded stream', text: pods() + exclude + end, event: excluded('fluentbit.io/exclude_stderr') },
  {
    name: 'the other stream',
    text: pods() + exclude + end,
    event: excluded('fluentbit.io/exclude_stdout'),
    assert: '.log == "x"',
  },
  { name: 'an excluded container', text: pods() + exclude + end, event: excluded('fluentbit.io/exclude-nginx') },
  {
    name: 'a stream of another container',
    text: pods() + exclude + end,
    event: excluded('fluentbit.io/exclude_stderr-other'),
    assert: '.log == "x"',
  },
  {
    name: 'the parser of an annotation',
    text: parsed(['Merge_Log_Key data']),
    event: pod('a=b', { pod_annotations: { 'fluentbit.io/parser': 'kv' } }),
    assert: '.data == { "key": "a", "value": "b" } && .log == "a=b"',
  },
  {
    name: 'the parser of an annotation for the stream',
    text: parsed(['Keep_Log Off']),
    event: pod('a=b', { pod_annotations: { 'fluentbit.io/parser': 'json', 'fluentbit.io/parser_stderr-nginx': 'kv' } }),
    assert: '.key == "a" && !exists(.log)',
  },
  {
    name: 'a parser that does not match',
    text: parsed(),
    event: pod('{"a":1}', { pod_annotations: { 'fluentbit.io/parser': 'kv' } }),
    assert: '.log == "{\\"a\\":1}" && !exists(.a)',
  },
  {
    name: 'JSON with texts that end in newlines',
    text: parsed(),
    event: pod('{"a":"x\\ny\\n\\n","b":"z\\\\n","o":{"c":"w\\n"}}'),
    assert: '.a == "x\\ny" && .b == "z" && .o.c == "w\\n"',
  },
  {
    name: 'JSON with texts that end in newlines, which stay without Merge_Log_Trim',
    text: parsed(['Merge_Log_Trim Off']),
    event: pod('{"a":"x\\n"}'),
    assert: '.a == "x\\n"',
  },
  {
    name: 'JSON with a field that has the name of the metadata',
    text: parsed(),
    event: pod('{"kubernetes":{"pod_name":"other","x":1}}'),
    assert: '.kubernetes.pod_name == "web-1" && !exists(.kubernetes.x)',
  },
  { name: 'JSON without an annotation', text: parsed(), event: pod('{"a":1}'), assert: '.a == 1' },
])('records of pods: $name', check)

const lines = (tag: string, match: string, path = '/var/log/containers/*.log') =>
  section('INPUT', 'Name tail', tag, `Path ${path}`, 'Parser docker') +
  section('FILTER', 'Name record_modifier', match, 'Record seen yes') +
  end
const regex =
  'Tag_Regex (?<pod_name>[^_/]+)_(?<namespace_name>[^_]+)_(?<container_name>.+)-\n    Tag kube.<namespace_name>.<pod_name>.<container_name>'
const ofPod = (file: string) => ({ ...pod('x'), file })

test.each<Case>([
  {
    name: 'a pattern with a part of the path, of a tag whose expression needs the id of the container',
    text: lines(regex.replace('.+)-', '.+)-(?<docker_id>[0-9a-f]{64})\\.log$'), 'Match kube.shop.*'),
    event: pod('x', { container_id: `containerd://${'0a'.repeat(32)}` }),
    assert: '.seen == "yes"',
  },
  {
    name: 'a pattern with a part of the path, of a tag whose expression matches no sample',
    text: lines(regex.replace('.+)-', 'nginx)-'), 'Match kube.shop.*'),
    event: pod('x'),
    assert: '.seen == "yes"',
  },
  {
    name: 'another part of the path, of a tag whose expression matches no sample',
    text: lines(regex.replace('.+)-', 'nginx)-'), 'Match kube.other.*'),
    event: pod('x'),
    assert: '!exists(.seen)',
  },
  {
    name: 'a pattern that matches the pod',
    text: lines('Tag kube.*', 'Match kube.var.log.containers.*_shop_*'),
    event: pod('x'),
    assert: '.seen == "yes"',
  },
  {
    name: 'a pattern that matches other pods',
    text: lines('Tag kube.*', 'Match kube.var.log.containers.*_cart_*'),
    event: pod('x'),
    assert: '!exists(.seen) && .log == "x"',
  },
  {
    name: 'an expression on the tag',
    text: lines('Tag kube.*', 'Match_Regex ^kube\\..*web-\\d'),
    event: pod('x'),
    assert: '.seen == "yes"',
  },
  {
    name: 'a tag from an expression on the path',
    text: lines(regex, 'Match kube.shop.web-1.*'),
    event: pod('x'),
    assert: '.seen == "yes"',
  },
  {
    name: 'another namespace in such a tag',
    text: lines(regex, 'Match kube.cart.*'),
    event: pod('x'),
    assert: '!exists(.seen)',
  },
  {
    name: 'a tag from the path in the pods directory',
    text: lines('Tag kube.*', 'Match *pods.shop_web*', '/var/log/pods/*/*/*.log'),
    event: ofPod('/var/log/pods/shop_web-1_uid/nginx/0.log'),
    assert: '.seen == "yes" && !exists(.file)',
  },
  {
    name: 'a tag of a file',
    text: lines('Tag app.*', 'Match app.srv.a.*', '/srv/*/x.log').replace('    Parser docker\n', ''),
    event: { message: 'x', file: '/srv/a/x.log' },
    assert: '.seen == "yes"',
  },
  {
    name: 'a new tag with a field and a part of the old one',
    text:
      pods() +
      section('FILTER', 'Name rewrite_tag', 'Match kube.*', 'Rule $log ^x ns.$stream.$TAG[0] false') +
      section('FILTER', 'Name record_modifier', 'Match ns.stderr.kube', 'Record seen yes') +
      section('FILTER', 'Name record_modifier', 'Match ns.stdout.*', 'Record wrong yes') +
      section('OUTPUT', 'Name null', 'Match ns.*'),
    event: pod('x'),
    assert: '.seen == "yes" && !exists(.wrong)',
  },
])('tags of records: $name', check)
