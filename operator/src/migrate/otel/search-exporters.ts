// Converts exporters for search engines to sinks, with programs that build the documents.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { literalTemplate } from '../escape.ts'
import { allCompressions, connectionOf, deliveryOptions, httpItself, httpOptions } from './connection.ts'
import { documentForms, form, withIntegers } from './forms.ts'
import type { Context, Mapping, Part, SinkPart } from './mapping.ts'

const searchItself = {
  ...httpItself,
  num_workers: '`request.concurrency` limits concurrent requests',
  flush: 'the sink builds its own batches',
  discover: 'the sink uses only the configured addresses',
  telemetry: 'the agent logs failed requests',
  user: '`auth`',
  password: '`auth`',
} as const

function documentSteps(part: Part, context: Context, byDefault: string): readonly Step[] {
  const mode = part.text('mapping.mode') ?? byDefault
  const lines = documentForms[mode]
  if (lines === undefined) {
    context.gap(
      part.place(['mapping', 'mode']),
      `${part.id}: mapping.mode ${mode}`,
      'the sink does not use the field names of this mode',
      `It sends documents in the mode \`${byDefault}\`; rename fields in the remap transform before the sink.`,
    )
  }
  const made = form(
    (lines ?? documentForms[byDefault] ?? []).join('\n'),
    `The document in the form of the exporter with mapping mode \`${lines === undefined ? byDefault : mode}\`.`,
  )
  // The exporter discards other records.
  return mode === 'bodymap' ? [{ type: 'filter', text: 'is_object(.message)' }, ...made] : made
}

function indexOf(part: Part, byDefault: string): string {
  const name = part.text('logs_index') ?? part.text('index')
  if (part.flag('logstash_format.enabled', false)) {
    const separator = part.text('logstash_format.prefix_separator') ?? '-'
    return `${literalTemplate(name ?? 'logs')}${separator}${part.text('logstash_format.date_format') ?? '%Y.%m.%d'}`
  }
  return literalTemplate(name ?? byDefault)
}

/** Whether attributes of the record choose the index. */
const isDynamic = (part: Part) =>
  !part.flag('logstash_format.enabled', false) &&
  part.flag('logs_dynamic_index.enabled', !part.has('logs_index') && !part.has('index'))

/** Statements that set `%index` and `%data_stream` to the data stream that attributes of the record name. */
function dynamicIndex(mode: string): readonly Step[] {
  const suffix = mode === 'otel' ? '.otel' : ''
  const from = (name: string, otherwise: string) =>
    ['.attributes', '.scope.attributes', '.resource.attributes']
      .map((root) => `string(${root}.${textLiteral(name)})`)
      .concat(otherwise)
      .join(' ?? ')
  const lines = [
    `dataset = replace(downcase(${from('data_stream.dataset', '"generic"')}), r'[-\\\\/*?"<>| ,#:]', "_") + "${suffix}"`,
    `area = replace(downcase(${from('data_stream.namespace', '"default"')}), r'[\\\\/*?"<>| ,#:]', "_")`,
    '%index = "logs-" + dataset + "-" + area',
    '%data_stream = { "type": "logs", "dataset": dataset, "namespace": area }',
    `named = ${from('elasticsearch.index', '""')}`,
    'if named != "" {',
    '  %index = named',
    '  del(%data_stream)',
    '}',
  ]
  return form(lines.join('\n'), 'The index, by attributes of the record.')
}

const searchOptions = {
  ...httpOptions,
  endpoints: '`endpoints`',
  logs_index: '`bulk.index`',
  index: '`bulk.index`',
  pipeline: '`pipeline`',
  'mapping.mode':
    'the structure of documents: `otel`, `none`, `raw`, `ecs` or `bodymap`; `otel` by default, as in current versions',
  'logstash_format.enabled': 'the date in `bulk.index`',
  'logstash_format.prefix_separator': '`bulk.index`',
  'logstash_format.date_format': '`bulk.index`',
  'retry.enabled': '`request.retry_attempts`',
  'retry.max_retries': '`request.retry_attempts`',
  'retry.max_requests': '`request.retry_attempts`, the older name',
  'logs_dynamic_index.enabled':
    'a field in `bulk.index`: the data stream that attributes name, or the attribute `elasticsearch.index`',
  api_key: 'a header',
} as const

/** The addresses of the destination. Without any, the exporter reads a variable. */
function addresses(part: Part, context: Context): readonly string[] {
  const given = part.has('endpoint') ? part.list('endpoint') : part.list('endpoints')
  const cloud = part.text('cloudid')
  if (given.length > 0) return given
  if (cloud === undefined || cloud.includes('SECRET[')) {
    const variable = cloud === undefined ? 'ELASTICSEARCH_URL' : 'the Cloud ID'
    const reason = `the address comes from ${cloud === undefined ? `the variable \`${variable}\`` : variable}`
    const nearest = 'Put the address into the Secret with the key `ELASTICSEARCH_URL`.'
    context.replaced(part.place(), `${part.id}: endpoint`, reason, nearest)
    return ['SECRET[env.ELASTICSEARCH_URL]']
  }
  // The name of the deployment, and the domain and the id of the cluster in Base64.
  const [domain = '', cluster = ''] = Buffer.from(cloud.replace(/^[^:]*:/, ''), 'base64')
    .toString()
    .split('$')
  const [host = '', port = '443'] = domain.split(':')
  const [id = '', own = port] = cluster.split(':')
  return [`https://${id}.${host}:${own}`]
}

export const elasticsearch: Mapping<SinkPart> = {
  name: 'elasticsearch',
  becomes: '`search_engine`',
  options: { ...searchOptions, cloudid: '`endpoints`', user: '`auth`', password: '`auth`' },
  itself: Object.fromEntries(
    Object.entries({
      ...searchItself,
      'mapping.dedup': 'a document has each name once',
      'mapping.dedot': 'the destination reads dots in names as objects',
      logs_dynamic_id: 'the destination assigns ids',
      metrics_index: 'the sink accepts only logs',
      traces_index: 'Penstock does not collect traces',
      'retry.initial_interval': 'as `request`',
      'retry.max_interval': 'as `request`',
      'retry.retry_on_status': 'the sink decides which responses to retry',
    }).filter(([name]) => name !== 'user' && name !== 'password'),
  ),
  build: (part, context) => {
    const mode = part.text('mapping.mode') ?? 'otel'
    if (!part.has('mapping.mode')) {
      context.replaced(
        part.place(),
        `${part.id}: mapping.mode`,
        'the default is `otel` since version 0.122 of the collector, and `none` before',
        'If your version is older, set `mapping.mode: none`, and convert again.',
      )
    }
    const { request = {}, ...others } = connectionOf(part, context, allCompressions, true)
    const user = part.text('user')
    const key = part.text('api_key')
    const headers = {
      ...(request as { headers?: object }).headers,
      ...(key === undefined ? {} : { Authorization: `ApiKey ${key}` }),
    }
    const attempts = !part.flag('retry.enabled', true)
      ? 0
      : part.has('retry.max_retries') || part.has('retry.max_requests')
        ? Number(part.text('retry.max_retries') ?? part.text('retry.max_requests'))
        : undefined
    const indexed = isDynamic(part) ? dynamicIndex(mode) : []
    const made = {
      ...(request as object),
      ...(Object.keys(headers).length > 0 ? { headers } : {}),
      ...(attempts === undefined ? {} : { retry_attempts: attempts }),
    }
    const pipeline = part.text('pipeline')
    const config = {
      endpoints: addresses(part, context),
      bulk: {
        action: 'create',
        index:
          indexed.length > 0
            ? '{{ %index }}'
            : indexOf(part, mode === 'otel' ? 'logs-generic.otel-default' : 'logs-generic-default'),
      },
      encoding: { except_fields: ['timestamp'] },
      ...(pipeline === undefined ? {} : { pipeline }),
      ...others,
      ...(user === undefined ? {} : { auth: { strategy: 'basic', user, password: part.text('password') ?? '' } }),
      ...(Object.keys(made).length > 0 ? { request: made } : {}),
    }
    return {
      component: { type: 'search_engine', config },
      steps: [...indexed, ...documentSteps(part, context, 'otel')],
    }
  },
}

export const opensearch: Mapping<SinkPart> = {
  name: 'opensearch',
  becomes: '`search_engine`',
  options: {
    ...Object.fromEntries(
      Object.entries(httpOptions).map(([name, becomes]) => [name in deliveryOptions ? name : `http.${name}`, becomes]),
    ),
    logs_index: '`bulk.index`',
    bulk_action: '`bulk.action`',
    'mapping.mode': 'the structure of documents: `ss4o` or `bodymap`',
    dataset: '`bulk.index`',
    namespace: '`bulk.index`',
  },
  itself: Object.fromEntries(
    Object.entries(httpItself).map(([name, how]) => [
      /^(?:retry|sending|batcher)/.test(name) ? name : `http.${name}`,
      how,
    ]),
  ),
  build: (part, context) => {
    const inner = part.within(['http'], { ...part.config, ...part.table('http') }, part.id)
    const dataset = part.text('dataset') ?? 'default'
    if (/%\{/.test(part.text('logs_index') ?? '')) {
      context.gap(
        part.place(['logs_index']),
        `${part.id}: logs_index`,
        'the sink reads `%{…}` in the name of an index as text',
        'Use a template: set a field in a remap transform, and name it in `bulk.index`, as in `logs-{{ %index }}`.',
      )
    }
    const config = {
      endpoints: inner.list('endpoint'),
      bulk: {
        action: part.text('bulk_action') ?? 'create',
        index: literalTemplate(
          part.text('logs_index') ?? `ss4o_logs-${dataset}-${part.text('namespace') ?? 'namespace'}`,
        ),
      },
      encoding: { except_fields: ['timestamp'] },
      ...connectionOf(inner, context, allCompressions, true),
    }
    // Unlike the exporter `elasticsearch`, this one writes `200` for a float.
    const steps = withIntegers(context, documentSteps(part, context, 'ss4o'))
    return { component: { type: 'search_engine', config }, steps }
  },
}
