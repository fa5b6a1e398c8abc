// The output that Grafana provides as a plugin. It has the name `grafana-loki`, or `loki` in older versions, and one option for the address.

import { literalTemplate } from '../escape.ts'
import type { Exception } from '../page.ts'
import { connection, delivery, itself, local, remap, secret, sized, value } from './connection.ts'
import { lokiLines, recordLines } from './lines.ts'
import type { Plugin, SinkPart } from './plugin.ts'
import { isOn, lastValue, type Section } from './sections.ts'
import { template } from './text.ts'

/** Whether an output is this plugin under its older name. The output of Fluent Bit itself has no such option. */
export const isOfGrafana = (section: Section) =>
  section.kind === 'output' && lastValue(section, 'url') !== undefined && lastValue(section, 'host') === undefined

const listOf = (text = '') =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')

/** `{name="value"}` as labels. */
function fixedLabels(text: string): Record<string, string> {
  const pairs = text.matchAll(/([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"/g)
  return Object.fromEntries(
    [...pairs].map(([, name = '', label = '']) => [name, literalTemplate(secret(label.replace(/\\(.)/g, '$1')))]),
  )
}

/** Fields of a pod that become labels with their own name. */
const podFields = ['namespace_name', 'pod_name', 'container_name', 'container_image', 'container_hash', 'host']

const seconds = (text: string | undefined) => {
  const found = /^(\d+(?:\.\d+)?)\s*(ms|s|m)?$/.exec(text ?? '')
  return found === null ? undefined : Number(found[1]) * ({ ms: 0.001, s: 1, m: 60 }[found[2] ?? 's'] ?? 1)
}

const onDisk: Exception = {
  how: '`buffer` of the sink',
  unless: /^(?:true|on|yes|1)$/i,
  reason: 'the plugin keeps records on disk, and the sink keeps them in memory',
  nearest: 'Set `buffer: {type: disk, max_size: BYTES}` of the sink.',
}

const labelFile: Exception = {
  how: '`labels` of the sink',
  unless: /./,
  reason: '`convert` does not read the file with the names of labels',
  nearest: 'Add the labels to `labels` of the sink.',
}

/** The address, the path, and the credentials of a URL. */
function addressOf(text: string): Record<string, unknown> {
  const found = /^(\w+:\/\/)(?:([^/@]*)@)?([^/]*)(\/.*)?$/s.exec(text)
  if (found === null) return { endpoint: text }
  const [, scheme = '', login, host = '', path = '/loki/api/v1/push'] = found
  const [user = '', password = ''] = (login ?? '').split(':')
  return {
    endpoint: `${scheme}${host}`,
    ...(path === '/loki/api/v1/push' ? {} : { path }),
    ...(login === undefined ? {} : { auth: { strategy: 'basic', user, password } }),
  }
}

export const grafanaLoki: Plugin<SinkPart> = {
  name: 'grafana-loki',
  becomes: '`log_aggregator`',
  options: {
    ...local,
    ...delivery,
    ...sized,
    url: '`endpoint`, `path`, and `auth` for its credentials',
    tenantid: '`tenant_id`',
    labels: '`labels`',
    labelkeys: '`labels`',
    autokuberneteslabels: 'the labels and the origin of the pod in `labels`',
    removekeys: 'a remap transform',
    lineformat: 'a remap transform',
    dropsinglekey: 'a remap transform',
    batchwait: '`batch.timeout_secs`',
    batchsize: '`batch.max_bytes`',
    timeout: '`request.timeout_secs`',
    maxretries: '`request.retry_attempts`; without it, the sink retries forever, whereas the plugin retries ten times',
  },
  itself: {
    ...itself,
    loglevel: 'the agent has one log level',
    minbackoff: 'the sink increases delays between attempts',
    maxbackoff: 'the sink increases delays between attempts',
    labelmappath: labelFile,
    buffer: onDisk,
    buffertype: '`buffer` of the sink',
    dquedir: '`buffer` of the sink',
    dquename: '`buffer` of the sink',
    dquesegmentsize: '`buffer` of the sink',
    dquesync: '`buffer` of the sink',
  },
  build: (section) => {
    const read = (name: string) => lastValue(section, name)
    const keys = listOf(read('labelkeys'))
    const isAutomatic = isOn(read('autokuberneteslabels'), false)
    const own = isAutomatic
      ? podFields.map((name) => [name, `{{ kubernetes.${name} }}`])
      : keys.map((key) => [key, template([key])])
    const removed = [...keys, ...listOf(read('removekeys'))].map((key) => [key])
    const single = isOn(read('dropsinglekey'), true) ? 'raw' : undefined
    const isPairs = read('lineformat') === 'key_value'
    const whole = ['.message = encode_logfmt(record)', ...(single === undefined ? [] : onlyValue)]
    const [wait, timeout, size, retries] = [
      seconds(read('batchwait')),
      seconds(read('timeout')),
      Number(read('batchsize')),
      Number(read('maxretries')),
    ]
    const tenant = value(section, 'tenantid')
    const { request: limits, ...shared } = connection(section)
    const batch = { ...(wait ? { timeout_secs: wait } : {}), ...(size > 0 ? { max_bytes: size } : {}) }
    const request = {
      ...(limits as object | undefined),
      ...(timeout ? { timeout_secs: Math.max(1, Math.ceil(timeout)) } : {}),
      ...(read('maxretries') === undefined || Number.isNaN(retries) ? {} : { retry_attempts: retries }),
    }
    const config = {
      ...addressOf(value(section, 'url') ?? 'http://localhost:3100/loki/api/v1/push'),
      labels: {
        ...fixedLabels(read('labels') ?? '{job="fluent-bit"}'),
        ...(isAutomatic ? { '*': '{{ kubernetes.labels }}' } : {}),
        ...Object.fromEntries(own),
      },
      out_of_order_action: 'accept',
      encoding: { codec: 'text' },
      ...shared,
      ...(tenant === undefined || tenant === '' ? {} : { tenant_id: literalTemplate(tenant) }),
      ...(Object.keys(batch).length === 0 ? {} : { batch }),
      ...(Object.keys(request).length === 0 ? {} : { request }),
    }
    const lines = isPairs ? [...recordLines(removed), ...whole] : lokiLines('json', single, removed)
    return { component: { type: 'log_aggregator', config }, steps: remap(...lines) }
  },
}

/** For a record with one field, only its value. */
const onlyValue = [
  'if length(record) == 1 {',
  '  only = get(values(record), [0]) ?? null',
  '  .message = string(only) ?? encode_json(only)',
  '}',
]
